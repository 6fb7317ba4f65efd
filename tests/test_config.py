"""Settings: every default, every place a value may come from, every mistake at once."""

from __future__ import annotations

import argparse
import dataclasses
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet import config, config_file, config_values, errors

DEFAULTS = {
    "static_pod_path": "/etc/kubernetes/manifests",
    "static_pod_url": (),
    "static_pod_url_header": (),
    "static_pod_url_header_file": "",
    "static_pod_url_token_file": "",
    "static_pod_url_ca_file": "",
    "static_pod_url_client_cert": "",
    "static_pod_url_client_key": "",
    "file_check_frequency": 20.0,
    "http_check_frequency": 20.0,
    "sync_frequency": 60.0,
    "node_name": "",
    "root_dir": "/var/lib/edgelet",
    "run_dir": "/run/edgelet",
    "pod_logs_dir": "/var/log/pods",
    "podman_socket": "",
    "socket": "/run/edgelet/edgelet.sock",
    "container_log_max_size": 10 * 1024 * 1024,
    "container_log_max_files": 5,
    "container_log_monitor_interval": 10.0,
    "address": "127.0.0.1",
    "port": 10250,
    "read_only_port": 0,
    "tls_cert_file": "",
    "tls_private_key_file": "",
    "client_ca_file": "",
    "token_auth_file": "",
    "registry_pull_qps": 5,
    "registry_burst": 10,
    "max_pods": 110,
    "allowed_unsafe_sysctls": (),
    "pod_network": "podman",
    "pod_cidr": "",
    "strict": False,
    "log_level": "info",
    "kubeconfig": "",
    "bootstrap_kubeconfig": "",
    "register_node": True,
    "node_labels": (),
    "register_with_taints": (("edgelet.io/static-pods-only", "", "NoSchedule"),),
    "node_ip": "",
    "node_status_update_frequency": 10.0,
    "node_status_report_frequency": 300.0,
    "node_lease_duration": 40,
    "kube_api_qps": 50,
    "kube_api_burst": 100,
    "shutdown_grace_period": 0.0,
    "shutdown_grace_period_critical_pods": 0.0,
    "config_file": "",
    "warnings": (),
}


def load(
    arguments: str | list[str] = "", file: str | None = None, environ: dict[str, str] | None = None
) -> config.Settings:
    """Load with an in-memory /etc/edgelet/config.yaml."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    config.add_arguments(parser)
    argv = arguments.split() if isinstance(arguments, str) else arguments
    namespace, unknown = parser.parse_known_args(argv)

    def read_file(path: str) -> bytes:
        if file is None or path != config.DEFAULT_CONFIG:
            raise FileNotFoundError(2, "No such file or directory", path)
        return file.encode()

    return config.load(namespace, environ or {}, read_file, unknown)


def mistakes(arguments: str | list[str] = "", file: str | None = None, environ: dict[str, str] | None = None) -> str:
    """The text of all mistakes."""
    with pytest.raises(errors.ConfigError) as caught:
        load(arguments, file, environ)
    assert "\n".join(caught.value.mistakes) == str(caught.value)
    return str(caught.value)


def test_every_default_is_pinned() -> None:
    assert dataclasses.asdict(load()) == DEFAULTS
    assert dataclasses.asdict(config.Settings()) == DEFAULTS


def test_every_setting_but_the_derived_ones_has_an_option() -> None:
    assert {o.field for o in config.OPTIONS} == set(DEFAULTS) - {"config_file", "warnings"}


def test_a_standalone_kubelets_file_works_and_names_what_has_no_effect() -> None:
    file = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /srv/pods
staticPodURL: https://fleet.example/pods
staticPodURLHeader:
  Authorization: [Bearer abc]
  X-Site: [north, south]
fileCheckFrequency: 0s
httpCheckFrequency: 1m0s
syncFrequency: 0s
cgroupDriver: systemd
containerLogMaxSize: 1Mi
evictionHard: {}
authentication: {anonymous: {enabled: false}}
maxPods: 20
"""
    settings = load(file=file)
    assert settings.static_pod_path == "/srv/pods"
    assert settings.static_pod_url == ("https://fleet.example/pods",)
    assert settings.static_pod_url_header == (
        ("Authorization", "Bearer abc"),
        ("X-Site", "north"),
        ("X-Site", "south"),
    )
    assert (settings.file_check_frequency, settings.http_check_frequency) == (20.0, 60.0)
    assert (settings.container_log_max_size, settings.max_pods) == (1024 * 1024, 20)
    assert settings.config_file == config.DEFAULT_CONFIG
    assert [w.split(" has no effect")[0] for w in settings.warnings] == [
        "/etc/edgelet/config.yaml:11: cgroupDriver",
    ]


def test_the_kubelets_way_to_name_a_client_ca_is_understood_and_anonymous_access_is_not() -> None:
    settings = load(file="authentication:\n  x509: {clientCAFile: /etc/ca.pem}\n  webhook: {enabled: false}\n")
    assert settings.client_ca_file == "/etc/ca.pem"
    assert load("--client-ca-file=/flag.pem").client_ca_file == "/flag.pem"
    with pytest.raises(errors.ConfigError, match="anonymous access is not offered"):
        load(file="authentication: {anonymous: {enabled: true}}\n")
    with pytest.raises(errors.ConfigError, match="write an IP address"):
        load("--address=everywhere")


def test_flags_beat_the_environment_that_beats_the_file_that_beats_the_defaults() -> None:
    file = "rootDir: /file\nrunDir: /file\npodLogsDir: /file\n"
    environ = {"EDGELET_RUN_DIR": "/environ", "EDGELET_POD_LOGS_DIR": "/environ"}
    settings = load("--pod-logs-dir /flag", file, environ)
    assert (settings.root_dir, settings.run_dir, settings.pod_logs_dir) == ("/file", "/environ", "/flag")


def test_the_kubelets_flags_are_understood() -> None:
    settings = load(
        [
            "--pod-manifest-path=/m",
            "--manifest-url",
            "http://a/x",
            "--manifest-url=https://b/y",
            "--manifest-url-header=a:hello,b:again",
            "--manifest-url-header",
            "b:beautiful",
            "--hostname-override=EDGE-7",
            "--register-node=false",
            "--file-check-frequency=1m30s",
            "--strict",
        ]
    )
    assert settings.static_pod_path == "/m"
    assert settings.static_pod_url == ("http://a/x", "https://b/y")
    assert settings.static_pod_url_header == (("a", "hello"), ("b", "again"), ("b", "beautiful"))
    assert settings.node_name == "edge-7"
    assert settings.register_node is False
    assert settings.strict is True
    assert settings.file_check_frequency == 90.0


def test_all_mistakes_of_all_places_come_at_once_each_with_what_would_be_right() -> None:
    text = mistakes(
        "--file-check-frequncy 3s --max-pods many stray",
        "fileCheckFrequncy: 20s\nhttpCheckFrequency: 20\nrootDir: [a]\nrootDir: /b\nkind: Deployment\n",
        {"EDGELET_NODE_NAME": "under_score"},
    )
    assert text.splitlines() == [
        "unknown flag --file-check-frequncy; did you mean --file-check-frequency?",
        'unexpected argument "stray"',
        "/etc/edgelet/config.yaml:1: fileCheckFrequncy is not a known key; did you mean fileCheckFrequency?",
        "/etc/edgelet/config.yaml:4: rootDir is given twice, first in line 3: keep one",
        '/etc/edgelet/config.yaml:5: kind "Deployment" is not known: write KubeletConfiguration, or leave it out',
        '/etc/edgelet/config.yaml:2: httpCheckFrequency "20" is not valid: '
        'write a duration with its unit, such as "20s", "1m30s" or "500ms"',
        "/etc/edgelet/config.yaml:3: rootDir \"['a']\" is not valid: write a single value here, not a list or a map",
        'environment variable EDGELET_NODE_NAME "under_score" is not valid: '
        'use letters, digits, "-" and ".", beginning and ending with a letter or digit',
        '--max-pods "many" is not valid: write a whole number from 0 to 10000',
    ]


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ("--file-check-frequency 1ms", "0.1s or more"),
        ("--container-log-max-files 1", "from 2 to 1000"),
        ("--container-log-max-size 10x", "is not a quantity"),
        ("--container-log-max-size -5", "write a size"),
        ("--manifest-url ftp://a", "http://HOST/PATH"),
        ("--manifest-url-header nocolon", '"Name:value"'),
        ("--strict=maybe", "true or false"),
        ("--log-level loud", "debug, info, warning, error"),
        ("--run-dir /" + "x" * 110, "choose a shorter --run-dir"),
        ("--socket /" + "x" * 110, "choose a shorter one"),
        ("--root-dir=", "write the path of a directory"),
        ("--pod-manifest-path /var/lib/edgelet", "move one of them"),
    ],
)
def test_a_wrong_value_says_what_would_be_right(arguments: str, right: str) -> None:
    assert right in mistakes(arguments)


def test_a_header_in_a_mistake_is_not_shown_for_it_may_be_a_secret() -> None:
    assert "s3cret" not in mistakes("--manifest-url-header s3cret")
    assert "s3cret" not in repr(load("--manifest-url http://a --manifest-url-header Authorization:s3cret"))


def test_a_named_configuration_file_has_to_be_there_and_the_default_one_has_not() -> None:
    assert load(file=None).config_file == ""
    assert "cannot read configuration file /nowhere" in mistakes("--config /nowhere")
    assert "cannot read configuration file /nowhere" in mistakes(environ={"EDGELET_CONFIG": "/nowhere"})


KEYS = [option.key for option in config.OPTIONS]
ODD = [
    "5",
    "[1, 2]",
    "[[]]",
    "[{a: b}]",
    "{a: {b: c}}",
    "{a: [b]}",
    "true",
    "2024-01-01",
    "1e999",
    "-1",
    "'x y'",
    "[null]",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_any_type_is_taken_or_is_a_mistake_that_names_its_line(key: str) -> None:
    for value in ODD:
        try:
            load(file=f"{key}: {value}\n")
        except errors.ConfigError as error:
            together = "shutdownGracePeriodCriticalPods is a part" in str(error) or "needs --kubeconfig" in str(error)
            assert together or str(error).startswith(f"{config.DEFAULT_CONFIG}:1: {key} "), (value, str(error))


def test_a_message_about_an_endless_value_is_short() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefg", "bcdefgh", strict=True)]
    said = mistakes(file="\n".join([*rows, "port: *h", f"address: {'x' * 5000}"]))
    assert 'port "a list" is not valid' in said
    assert len(said) < 2000


@pytest.mark.parametrize(
    "flag", ["--file-check-frequency", "--container-log-monitor-interval", "--shutdown-grace-period"]
)
def test_a_duration_for_ever_is_a_mistake(flag: str) -> None:
    assert "it is too long: 8760h or less" in mistakes(f"{flag}=9999999h")
    load(f"{flag}=8760h")


@pytest.mark.parametrize("file", ["", "# nothing set\n", "{}\n", "---\n"])
def test_an_empty_configuration_file_sets_nothing(file: str) -> None:
    assert dataclasses.asdict(load(file=file)) == DEFAULTS | {"config_file": config.DEFAULT_CONFIG}


@pytest.mark.parametrize(
    "file", ["- a\n", "a: [\n", "just words\n", "a: &x *x\n", "\x00", "a: !!python/name:os.system\n"]
)
def test_a_file_that_is_no_configuration_is_one_mistake_that_names_it(file: str) -> None:
    assert mistakes(file=file).startswith(config.DEFAULT_CONFIG)


def test_a_misspelt_variable_is_a_warning_and_foreign_ones_are_not_ours() -> None:
    settings = load(environ={"EDGELET_ROOTDIR": "/x", "EDGELET_BOOT_ID": "1", "EDGELET_BENCH_ROUNDS": "3", "HOME": "/"})
    assert settings.warnings == ("environment variable EDGELET_ROOTDIR is not used; did you mean EDGELET_ROOT_DIR?",)


def test_relative_paths_become_absolute_and_the_socket_follows_the_run_directory() -> None:
    settings = load("--root-dir state --run-dir run --podman-socket unix:///p.sock")
    assert settings.root_dir == os.path.abspath("state")
    assert settings.socket == os.path.abspath("run/edgelet.sock")
    assert settings.podman_socket == "/p.sock"


def test_an_empty_manifest_path_turns_the_file_source_off() -> None:
    assert load(file='staticPodPath: ""').static_pod_path == ""


def test_every_kubelet_key_has_exactly_one_meaning() -> None:
    assert not {o.key for o in config.OPTIONS} & config_file.UNUSED_KEYS.keys()
    assert len(config_file.UNUSED_KEYS) == sum(len(keys.split()) for keys in config_file._NOT_USED.values())


def test_two_roots_have_two_owners_and_a_link_to_a_root_has_the_same(tmp_path: os.PathLike[str]) -> None:
    one, two, link = (os.path.join(tmp_path, n) for n in ("one", "two", "link"))
    os.mkdir(one)
    os.symlink(one, link)
    assert config.owner(config.DEFAULT_ROOT) == config.owner(config.DEFAULT_ROOT + "/") == "default"
    assert config.owner(one) == config.owner(link) != config.owner(two)
    assert len(config.owner(one)) == 8 and int(config.owner(one), 16) >= 0


def test_clients_find_the_agent_by_variable_or_at_the_usual_place() -> None:
    assert config.default_socket({}) == "/run/edgelet/edgelet.sock"
    assert config.default_socket({"EDGELET_SOCKET": "/s"}) == "/s"


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, millis: int) -> None:
    seconds = config_values.go_duration(f"{hours}h{minutes}m{millis}ms")
    assert seconds == pytest.approx(hours * 3600 + minutes * 60 + millis / 1000)


@given(st.text(max_size=30), st.sampled_from(config.OPTIONS))
def test_any_text_gives_a_value_or_a_mistake_that_names_its_flag(text: str, option: config.Option) -> None:
    try:
        load([f"{option.flags[0]}={text}"])
    except errors.ConfigError as error:
        assert str(error)


@given(st.binary(max_size=200))
def test_any_bytes_as_a_file_give_settings_or_mistakes_that_name_the_file(data: bytes) -> None:
    parsed = config_file.parse(data, "/c.yaml", frozenset({"rootDir"}))
    assert all(m.startswith("/c.yaml:") for m in parsed.mistakes + parsed.warnings)


def test_labels_and_taints_of_the_node_are_written_as_for_a_kubelet() -> None:
    settings = load("--node-labels site=north,line= --register-with-taints a=b:NoExecute,c:NoSchedule")
    assert settings.node_labels == (("site", "north"), ("line", ""))
    assert settings.register_with_taints == (("a", "b", "NoExecute"), ("c", "", "NoSchedule"))
    written = load(file="nodeLabels: {site: north}\nregisterWithTaints: [{key: a, effect: NoSchedule}]\n")
    assert written.node_labels == (("site", "north"),)
    assert written.register_with_taints == (("a", "", "NoSchedule"),)
    assert load(["--register-with-taints="]).register_with_taints == ()
    assert "write labels as" in mistakes("--node-labels =x")
    assert "write taints as" in mistakes("--register-with-taints a=b")


def test_a_report_frequency_follows_the_update_frequency_when_only_that_is_set() -> None:
    assert load("--node-status-update-frequency 20s").node_status_report_frequency == 20.0
    both = load("--node-status-update-frequency 20s --node-status-report-frequency 1m")
    assert both.node_status_report_frequency == 60.0


def test_the_pods_network_is_a_name_and_its_addresses_a_network() -> None:
    settings = load(file="podNetwork: edgelet\npodCIDR: 10.89.0.0/24\n")
    assert (settings.pod_network, settings.pod_cidr) == ("edgelet", "10.89.0.0/24")
    assert load("--pod-network=").pod_network == "podman"
    assert "up to 15 lower-case letters" in mistakes("--pod-network=a_name_that_no_bridge_can_have")
    assert "10.89.0.1/24 has host bits set" in mistakes("--pod-cidr=10.89.0.1/24")
