"""The files for Docker and nginx fit together and fit the repository. Containers are not built here."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from traitlets.config.loader import PyFileConfigLoader

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, such as ("USER", "needle"), in order."""
    text = re.sub(r"\\\n\s*", " ", dockerfile.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def values(dockerfile: Path, name: str) -> list[str]:
    return [value for instruction, value in instructions(dockerfile) if instruction == name]


def is_sent(path: str, ignore: Path) -> bool:
    """Whether a file of the checkout goes to the builder."""
    sent = True
    for line in ignore.read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = Path(path).parts
        heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        names = parts if "**/" in line else heads
        if line and not line.startswith("#") and any(fnmatch.fnmatch(name, pattern) for name in names):
            sent = line.startswith("!")
    return sent


@pytest.fixture(params=sorted(DEPLOY.rglob("*Dockerfile")), ids=lambda path: str(path.relative_to(ROOT)))
def dockerfile(request):
    return request.param


def test_an_image_has_a_python_that_the_project_admits(dockerfile):
    image, version = values(dockerfile, "FROM")[0].split(":")
    assert image == "python"
    major, minor = re.fullmatch(r"(\d+)\.(\d+)-slim", version).groups()
    oldest = re.fullmatch(r">=(\d+)\.(\d+)", PROJECT["requires-python"]).groups()
    assert (int(major), int(minor)) >= tuple(map(int, oldest))


def test_what_an_image_copies_is_there_and_sent_to_the_builder(dockerfile):
    ignore = dockerfile.with_name("Dockerfile.dockerignore")
    for copied in values(dockerfile, "COPY"):
        *sources, _ = copied.split()
        for source in sources:
            path = ROOT / source
            files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
            wanted = [str(file.relative_to(ROOT)) for file in files if "__pycache__" not in file.parts]
            assert wanted
            assert all(Path(ROOT, name).is_file() for name in wanted)
            assert all(is_sent(name, ignore) for name in wanted)
    copied = {source for value in values(dockerfile, "COPY") for source in value.split()[:-1]}
    for name in re.findall(r"^!(.+)$", ignore.read_text(), flags=re.MULTILINE):
        assert {name, name.split("/")[0]} & copied, f"{name} is sent, but not copied"
    for name in (".git/config", ".venv/bin/python", "build/book/html/index.html", "needle/__pycache__/a.pyc"):
        assert not is_sent(name, ignore)


def test_an_image_installs_the_exact_versions_and_runs_nothing_as_root(dockerfile):
    installs = [
        part for run in values(dockerfile, "RUN") for part in run.split("&&") if "pip install" in part
    ]
    assert installs
    assert all("--constraint constraints.txt" in install for install in installs)
    extras = {extra for install in installs for extra in re.findall(r'"\.\[([\w,]+)\]"', install)}
    assert extras
    assert {name for extra in extras for name in extra.split(",")} <= PROJECT["optional-dependencies"].keys()
    order = [name for name, _ in instructions(dockerfile)]
    user = values(dockerfile, "USER")[-1]
    assert user != "root"
    assert any(f"useradd --create-home --uid 1000 {user}" in run for run in values(dockerfile, "RUN"))
    assert order.index("USER") < order.index("CMD")


def test_the_compose_file_and_what_it_names_fit_together():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    playground, front = compose["services"]["playground"], compose["services"]["front"]
    build = playground["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    dockerfile = (DEPLOY / build["context"] / build["dockerfile"]).resolve()
    assert dockerfile == DEPLOY / "Dockerfile"
    (port,) = values(dockerfile, "EXPOSE")
    command = values(dockerfile, "CMD")[-1]
    assert f'"--server.port={port}"' in command
    assert f"127.0.0.1:{port}/_stcore/health" in values(dockerfile, "HEALTHCHECK")[0]

    assert front["depends_on"]["playground"]["condition"] == "service_healthy"
    environment = front["environment"]
    assert environment["PROCESSES"] == playground["deploy"]["replicas"]
    assert environment["SERVER"] == f"${{COMPOSE_PROJECT_NAME}}-playground-%d:{port} resolve"
    for mount in front["volumes"]:
        source, _, rest = mount.partition(":")
        assert (DEPLOY / source).is_file()
        assert rest.endswith(":ro")
    assert os.access(DEPLOY / "servers.sh", os.X_OK)
    (listens,) = re.findall(r"^\s*listen (\d+);", (DEPLOY / "nginx.conf").read_text(), flags=re.MULTILINE)
    assert [published.rpartition(":")[2] for published in front["ports"]] == [listens]
    assert f"127.0.0.1:{listens}/_stcore/health" in front["healthcheck"]["test"][-1]


def test_the_list_of_servers(tmp_path):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    given = compose["services"]["front"]["environment"] | {"PROCESSES": "3", "LIST": str(tmp_path / "list")}
    given["SERVER"] = given["SERVER"].replace("${COMPOSE_PROJECT_NAME}", compose["name"])
    subprocess.run([DEPLOY / "servers.sh"], env=os.environ | given, check=True)
    lines = (tmp_path / "list").read_text().splitlines()
    assert lines == [
        "resolver 127.0.0.11 valid=5s ipv6=off;",
        *[f"server needle-playground-{n}:8501 resolve max_fails=1 fail_timeout=2s;" for n in (1, 2, 3)],
    ]


def test_nginx_takes_the_configuration(tmp_path, nginx):
    given = {"PROCESSES": "4", "SERVER": "127.0.0.1:86%02d", "LIST": str(tmp_path / "servers.conf")}
    subprocess.run([DEPLOY / "servers.sh"], env=os.environ | given, check=True)
    (tmp_path / "nginx.conf").write_text((DEPLOY / "nginx.conf").read_text())
    command = f"{nginx} -t -p {tmp_path} -c {tmp_path}/nginx.conf -e stderr"
    done = subprocess.run(
        [*shlex.split(command), "-g", f"pid {tmp_path}/pid;"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr
    (tmp_path / "servers.conf").write_text("server nowhere")
    broken = subprocess.run(
        [*shlex.split(command), "-g", f"pid {tmp_path}/pid;"], capture_output=True, text=True
    )
    assert broken.returncode != 0


def test_no_address_of_a_registry_is_written_down():
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert not re.search(r"(docker\.io|ghcr\.io|quay\.io|gcr\.io|pypi\.org)", path.read_text()), path


# ---- JupyterHub ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a class with two students and a lecturer."""
    monkeypatch.setenv("CLASS_FOLDER", str(tmp_path))
    (tmp_path / "students.txt").write_text("ada\nalan\n")
    (tmp_path / "lecturers.txt").write_text("grace\n")
    return tmp_path


def hub():
    """What JupyterHub reads."""
    return PyFileConfigLoader("jupyterhub_config.py", path=str(DEPLOY / "hub")).load_config()


@pytest.fixture
def owners(monkeypatch):
    """Who owns what: only the system's administrator could really give folders away."""
    owners = {}
    monkeypatch.setattr(os, "chown", lambda path, user, group: owners.update({path: (user, group)}))
    return owners


def starts(config, name):
    """The options with which the container of a person is made."""
    spawner = SimpleNamespace(user=SimpleNamespace(name=name))
    config.Spawner.pre_spawn_hook(spawner)
    return spawner.extra_create_kwargs


def test_only_the_class_may_come_in_and_lecturers_administer(folder):
    config = hub()
    assert config.Authenticator.allowed_users == {"ada", "alan", "grace"}
    assert config.Authenticator.admin_users == {"grace"}
    assert config.FirstUseAuthenticator.create_users is False
    (culler,) = config.JupyterHub.services
    (role,) = config.JupyterHub.load_roles
    assert culler["name"] == role["name"] == role["services"][0]
    assert "jupyterhub_idle_culler" in culler["command"]


@pytest.mark.parametrize("name", ["Ada", "ada:x", "../ada", "root\tada2$", "0ada", "root", "a" * 40])
def test_a_name_that_is_none_ends_the_hub_with_a_sentence(folder, name):
    (folder / "students.txt").write_text(name)
    with pytest.raises(SystemExit, match=r"students\.txt: .* is no name"):
        hub()


def test_each_person_keeps_a_number_and_a_folder(folder, owners):
    config = hub()
    assert starts(config, "ada") == {"user": "10000:10000"}
    assert starts(config, "grace") == {"user": "10001:10001"}
    (folder / "students.txt").write_text("alan\nbarbara\nada\n")
    config = hub()  # it is started again, with other people
    assert starts(config, "barbara") == {"user": "10002:10002"}
    assert starts(config, "ada") == {"user": "10000:10000"}
    lines = (folder / "passwd").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["root", "ada", "grace", "barbara"]
    assert owners == {
        folder / "homes" / name: (number, number)
        for name, number in (("ada", 10000), ("grace", 10001), ("barbara", 10002))
    }
    for name in ("ada", "grace", "barbara"):
        assert stat.S_IMODE((folder / "homes" / name).stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "exchange").stat().st_mode) == 0o1777


def test_what_the_hub_writes_is_in_the_folder_of_the_class(folder):
    config = hub()
    for path in (
        config.FirstUseAuthenticator.dbm_path,
        config.JupyterHub.cookie_secret_file,
        config.JupyterHub.db_url.removeprefix("sqlite:///"),
        config.ConfigurableHTTPProxy.pid_file,  # it would be in the checkout
    ):
        assert Path(path).parent == folder


def test_the_page_collects_what_a_student_submits_again():
    page = (ROOT / "notebooks" / "JUPYTERHUB.md").read_text()
    collects = re.findall(r"^ +nbgrader collect (.*)$", page, flags=re.MULTILINE)
    assert collects
    assert all(arguments.startswith("--update ") for arguments in collects)


def test_the_hub_starts_the_image_that_the_page_builds(folder):
    config, page = hub(), (ROOT / "notebooks" / "JUPYTERHUB.md").read_text()
    assert f"docker build --file deploy/hub/Dockerfile --tag {config.DockerSpawner.image} ." in page
    network = f"docker network create --subnet 172.30.0.0/16 {config.DockerSpawner.network_name}"
    assert network in page
    assert config.JupyterHub.hub_ip == "172.30.0.1"
    image = (DEPLOY / "hub" / "Dockerfile").read_text()
    (version,) = set(re.findall(r'"jupyterhub==([\d.*]+)"', image + page))
    assert version.endswith(".*")
    mounts = config.DockerSpawner.volumes
    assert mounts[str(folder / "homes/{username}")] == "/home/student"
    assert mounts[str(folder / "passwd")] == {"bind": "/etc/passwd", "mode": "ro"}
    assert config.Spawner.environment["HOME"] == "/home/student"
    assert config.Spawner.environment["SHELL"] == "/bin/bash"
    ci = (ROOT / ".ci" / "run").read_text()
    assert set(re.findall(r"nbgrader==([\d.]+)", image)) == set(re.findall(r"nbgrader==([\d.]+)", ci))
