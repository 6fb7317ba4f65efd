"""Pure parts of the Podman adapter: answers read, errors classified, containers.conf written."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet import errors
from edgelet.adapters.podman import conf, host, images, refusals, seen
from edgelet.adapters.podman.times import Times
from edgelet.model import labels
from edgelet.model.observed import ObservedContainer, State
from tests.fakes import FakeClock

# ---- answers ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T16:03:56.5Z", 1796054636.5),
        ("2026-11-30T16:03:56.827549598Z", 1796054636.827549598),
        ("2026-11-30T16:03:56Z", 1796054636.0),
        ("2026-11-30T17:03:56.827549598+01:00", 1796054636.827549598),
        ("0001-01-01T00:00:00Z", 0.0),
        ("", 0.0),
    ],
)
def test_epoch(text: str, expected: float) -> None:
    assert seen.epoch(text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (15, "SIGTERM"), ("15", "SIGTERM"), ("SIGINT", "SIGINT"), ("INT", "SIGINT"), (37, "SIGRTMIN+3"),
        (0, "SIGTERM"), (None, "SIGTERM"), ("", "SIGTERM"), (99, "SIGRTMIN+65"), (33, "SIGTERM"),
    ],
)  # fmt: skip
def test_signal_names(value: object, expected: str) -> None:
    assert seen.signal_name(value) == expected


def row(**fields: object) -> dict[str, object]:
    marks = {labels.CONTAINER_NAME: "c", labels.RESTART_COUNT: "2", labels.GRACE: "7"}
    return {"Id": "i", "State": "created", "Labels": marks, "Image": "demo", "ImageID": "abc", **fields}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("running", State.RUNNING), ("stopping", State.RUNNING), ("exited", State.EXITED), ("stopped", State.EXITED),
        ("created", State.CREATED), ("initialized", State.CREATED), ("weird", State.UNKNOWN), ("", State.UNKNOWN),
    ],
)  # fmt: skip
def test_states(word: str, expected: State) -> None:
    assert seen.container(row(State=word), None).state is expected


def test_a_row_without_details() -> None:
    made = seen.container(row(), None)
    assert (made.name, made.restart_count, made.grace, made.image_id) == ("c", 2, 7, "sha256:abc")


def test_labels_that_somebody_broke_cost_nothing_but_themselves() -> None:
    made = seen.container(row(Labels={labels.RESTART_COUNT: "many", labels.GRACE: "soon"}), None)
    assert (made.name, made.restart_count) == ("", 0)
    assert seen.container(row(Labels=None), None).grace is None


def test_an_infra_container_that_has_exited_is_dead_and_one_not_started_is_not() -> None:
    base = {"Id": "p", "InfraId": "inf", "Labels": {}, "Created": "2026-11-30T16:03:56Z"}
    states = {
        s: seen.pod(base, {"Id": "inf", "State": s, "Pid": 5}, ("1.2.3.4",)) for s in ("created", "running", "exited")
    }
    assert [states[s].infra_dead for s in states] == [False, False, True]
    assert [states[s].infra_pid for s in states] == [0, 5, 0]
    assert [states[s].ips for s in states] == [(), ("1.2.3.4",), ()]


def test_a_pod_without_the_infra_container_it_was_to_have_is_dead() -> None:
    base = {"Id": "p", "InfraId": "", "Created": "2026-11-30T16:03:56Z"}
    marks: tuple[dict[str, str], ...] = ({labels.INFRA: "true"}, {labels.INFRA: "false"}, {})
    assert [seen.pod({**base, "Labels": m}, None, ()).infra_dead for m in marks] == [True, False, False]


# ---- times ----


def observed(**fields: object) -> ObservedContainer:
    base = ObservedContainer("id", "c", State.EXITED, started_at=100.0, finished_at=110.0)
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_wall_clock_that_jumps_moves_no_container(before: float, after: float) -> None:
    clock = FakeClock(monotonic=5000.0, time=200.0)
    times = Times(clock)
    clock.jump(before)
    first = times.fix(observed())
    assert 0.0 <= first.started_mono <= first.finished_mono <= 5000.0
    clock.advance(10)
    clock.jump(after)
    assert times.fix(observed()) == first


def test_times_from_the_wall_clock() -> None:
    made = Times(FakeClock(monotonic=5000.0, time=200.0)).fix(observed())
    assert (made.started_mono, made.finished_mono) == (4900.0, 4910.0)


def test_a_second_run_of_the_same_container_has_its_own_times() -> None:
    times = Times(FakeClock(monotonic=5000.0, time=200.0))
    times.fix(observed())
    made = times.fix(observed(started_at=150.0, finished_at=160.0))
    assert (made.started_mono, made.finished_mono) == (4950.0, 4960.0)


# ---- errors ----


@pytest.mark.parametrize(
    ("status", "cause", "message", "expected"),
    [
        (409, "pod already exists", 'name "x" is in use: pod already exists', errors.Conflict),
        (500, "that name is already in use", "creating container storage: the container name ...", errors.Conflict),
        (500, "no such pod", "no pod with name or ID x found: no such pod", errors.NotFound),
        (500, "image not known", "x: image not known", errors.ImageMissing),
        (404, "no such container", "no container with name", errors.NotFound),
        (500, "container not known", 'getting container from store "x": container not known', errors.NotFound),
        (500, "OCI runtime attempted to invoke a command that was not found", "runc: ...", errors.Permanent),
        (500, "OCI permission denied", "runc: ...", errors.Permanent),
        (500, "database is locked", "x", errors.Temporary),
        (500, "address already in use", "rootlessport listen tcp: bind: address already in use", errors.Temporary),
        (500, "something else", "x", errors.Temporary),
        (500, "no command or entrypoint provided, and no CMD or ENTRYPOINT from image", "x", errors.Permanent),
        (500, "unknown capability", '"CAP_X": unknown capability', errors.Permanent),
        (400, "bad", "decoding json", errors.Permanent),
        (404, "", "", errors.NotFound),
    ],
)
def test_failures_have_a_type(status: int, cause: str, message: str, expected: type[errors.RuntimeFailure]) -> None:
    made = refusals.failure(status, cause, message, "create a container")
    assert type(made) is expected
    assert str(made).startswith("cannot create a container: ")


REFUSED = "runc: runc create failed: unable to start container process: error during container init: "


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("unable to set memory limit to 4096 (current usage: 2764800)", errors.Permanent),
        (
            "crun: the memory limit could be too low: enable controllers `+memory`: write file "
            "`/sys/fs/cgroup/machine.slice/libpod-1.scope/cgroup.subtree_control`: Cannot allocate memory",
            errors.Permanent,
        ),
        ('error mounting "/x" to rootfs at "/proc/x": it is inside /proc', errors.Permanent),
        ("write /proc/sys/net/ipv4/ip_local_port_range: invalid argument", errors.Permanent),
        ("mkdir /x: no space left on device", errors.Temporary),
        ("fork/exec /proc/self/exe: resource temporarily unavailable", errors.Temporary),
        ("error joining namespace /run/netns/netns-1: no such file or directory", errors.Temporary),
        ("lstat /proc/4711/ns/net: no such file or directory", errors.Temporary),
    ],
)
def test_a_runtime_that_fails_a_start_refuses_the_container_unless_the_machine_fails(
    said: str, expected: type[errors.RuntimeFailure]
) -> None:
    made = refusals.failure(
        500, "OCI runtime error", f"{REFUSED}{said}: OCI runtime error", f"start container {'0' * 12}"
    )
    assert type(made) is expected
    if isinstance(made, errors.Permanent):
        assert made.said == f"{REFUSED}{said}: OCI runtime error"


def test_what_a_runtime_says_of_anything_but_a_start_blames_nobody() -> None:
    assert (
        type(refusals.failure(500, "OCI runtime error", "x: OCI runtime error", "signal container 1"))
        is errors.Temporary
    )


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("POST", "containers/create", "create a container"),
        ("POST", "pods/create", "create a pod"),
        ("POST", f"containers/{'ab' * 32}/start", "start container abababababab"),
        ("POST", f"containers/{'ab' * 32}/kill", "signal container abababababab"),
        ("POST", "images/pull", "pull an image"),
        ("GET", "containers/json", "list containers"),
        ("GET", "images/localhost%2Fx%3A1/json", "look at image localhost/x:1"),
        ("DELETE", f"pods/{'ab' * 32}", "remove pod abababababab"),
        ("GET", "info", "GET info"),
    ],
)
def test_calls_are_told_in_words(method: str, path: str, words: str) -> None:
    assert refusals.deed(method, path) == words


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("parsing reference \"A\": repository name must be lowercase", "InvalidImageName"),
        ("pinging container registry x: dial tcp 1.2.3.4:443: connect: connection refused", "RegistryUnavailable"),
        ("reading manifest latest in x: manifest unknown", "ErrImagePull"),
        ("Source image rejected: A signature was required, but no signature exists", "SignatureValidationFailed"),
    ],
)  # fmt: skip
def test_pull_reasons(message: str, expected: str) -> None:
    assert images.reason(message) == expected


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1", "docker.io/library/nginx:1"),
        ("a/b:1", "docker.io/a/b:1"),
        ("localhost/x", "localhost/x"),
        ("host:5000/x", "host:5000/x"),
        ("r.io/x@sha256:0", "r.io/x@sha256:0"),
    ],
)
def test_short_names_mean_what_they_mean_in_kubernetes(given_name: str, expected: str) -> None:
    assert images.qualified(given_name) == expected


# ---- containers.conf ----

ORDINARY = host.Host(
    cgroup_v2=True,
    controllers=frozenset({"cpu", "memory", "pids"}),
    swap_limit=True,
    systemd=True,
    runtimes=("crun",),
    can_raise_limits=True,
    nofile=524288,
    nproc=-1,
    memory=1 << 30,
    oom_score_adj=0,
    boot_id="b",
)


def test_an_ordinary_machine_needs_no_file() -> None:
    assert conf.needed(ORDINARY) == {}


def test_a_machine_without_systemd_on_hybrid_cgroups_with_low_limits() -> None:
    poor = dataclasses.replace(
        ORDINARY,
        cgroup_v2=False,
        systemd=False,
        runtimes=("crun", "runc"),
        can_raise_limits=False,
        nofile=20000,
        nproc=32768,
    )
    assert conf.needed(poor) == {
        "engine": {"runtime": "runc", "cgroup_manager": "cgroupfs", "events_logger": "file"},
        "containers": {"default_ulimits": ["nofile=20000:20000", "nproc=32768:32768"]},
    }


def test_unlimited_and_high_limits_are_left_to_podman() -> None:
    high = dataclasses.replace(ORDINARY, can_raise_limits=False, nofile=1 << 30, nproc=-1)
    assert conf.needed(high) == {}


def test_the_user_s_settings_win() -> None:
    user = {"engine": {"runtime": "crun", "volume_path": "/v"}, "network": {"default_subnet": "10.1.0.0/16"}}
    ours: conf.Tables = {"engine": {"runtime": "runc", "cgroup_manager": "cgroupfs"}}
    assert conf.merged(user, ours) == {
        "engine": {"runtime": "crun", "volume_path": "/v", "cgroup_manager": "cgroupfs"},
        "network": {"default_subnet": "10.1.0.0/16"},
    }


_scalars = st.one_of(st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=20))
_tables = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.one_of(_scalars, st.lists(_scalars, max_size=3), st.dictionaries(st.text(min_size=1, max_size=8), _scalars)),
    max_size=4,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), _tables, max_size=4))
def test_what_is_written_is_read_back_the_same(tables: conf.Tables) -> None:
    assert tomllib.loads(conf.text(tables)) == tables
