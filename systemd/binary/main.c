/* The whole of edgelet in one file: CPython's library and the compiled modules that edgelet needs are linked
 * in, its Python code is a zip archive at the end of this very executable, read from there and never
 * unpacked. Nothing of the host's Python, if there is one, is looked at (isolated configuration). */
#include <Python.h>
#include <stdlib.h>
#include <unistd.h>

#define MODULES(each) \
    each(_asyncio) each(_contextvars) each(_ctypes) each(_decimal) each(_hashlib) each(_json) each(_queue) \
    each(_ssl) each(_typing) each(mmap) each(resource) each(termios)

#define DECLARE(name) extern PyObject *PyInit_##name(void);
MODULES(DECLARE)
extern PyObject *PyInit__yaml(void);

/* Linked modules are found by top-level names only: yaml/_yaml.py in the archive passes this one on. */
#define ROW(name) {#name, PyInit_##name},
static struct _inittab added[] = {MODULES(ROW){"_linked_yaml", PyInit__yaml}, {NULL, NULL}};

static void or_die(PyStatus status)
{
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
}

static void configure(int argc, char **argv, const wchar_t *self)
{
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1; /* a service has no locale */
    or_die(Py_PreInitialize(&before));

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.write_bytecode = 0;
    config.site_import = 0;
    config.parse_argv = 0;
    config.optimization_level = 2;
    config.install_signal_handlers = 1;
    or_die(PyConfig_SetBytesArgv(&config, argc, argv));
    or_die(PyConfig_SetString(&config, &config.executable, self));
    or_die(PyConfig_SetString(&config, &config.prefix, L""));
    or_die(PyConfig_SetString(&config, &config.exec_prefix, L""));
    or_die(PyConfig_SetString(&config, &config.base_prefix, L""));
    or_die(PyConfig_SetString(&config, &config.base_exec_prefix, L""));
    config.module_search_paths_set = 1;
    or_die(PyWideStringList_Append(&config.module_search_paths, self));
    or_die(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

int main(int argc, char **argv)
{
    static char path[4096];
    static wchar_t wide[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size < 0 || mbstowcs(wide, path, 4096) == (size_t)-1) {
        fputs("edgelet: cannot find its own executable: is /proc mounted?\n", stderr);
        return 1;
    }
    if (PyImport_ExtendInittab(added) < 0) return 1;
    configure(argc, argv, wide);
    PyObject *boot = PyImport_ImportModule("edgelet_boot");
    if (boot == NULL) PyErr_Print(); /* a SystemExit ends the process here */
    Py_XDECREF(boot);
    return Py_FinalizeEx() < 0 || boot == NULL ? 1 : 0;
}
