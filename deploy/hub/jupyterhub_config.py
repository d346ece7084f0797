"""JupyterHub for a class: a server and a folder for each student. notebooks/JUPYTERHUB.md explains it."""

import os
import re
import sys
from pathlib import Path

c = get_config()  # noqa: F821, JupyterHub puts it here

#: The people, what they write, and what they hand in. It outlives the hub and every container.
CLASS = Path(os.environ.get("CLASS_FOLDER", "/srv/class"))
#: The numbers of people begin here; those below are the machine's own.
FIRST_NUMBER = 10_000


def people(name):
    """The names in a file of CLASS, one in each line."""
    names = (CLASS / name).read_text().split() if (CLASS / name).exists() else []
    for person in names:
        if person == "root" or not re.fullmatch(r"[a-z][a-z0-9]{0,30}", person):
            sys.exit(f"{CLASS / name}: {person!r} is no name: a small letter, then small letters and digits.")
    return set(names)


# Who may come in. The first password that somebody types becomes theirs: let everybody log in once in class.
c.JupyterHub.authenticator_class = "firstuse"
c.FirstUseAuthenticator.dbm_path = str(CLASS / "passwords")
c.FirstUseAuthenticator.create_users = False
c.Authenticator.allowed_users = people("students.txt") | people("lecturers.txt")
c.Authenticator.admin_users = people("lecturers.txt")

# What each of them gets. The figures behind it are in notebooks/JUPYTERHUB.md.
c.JupyterHub.spawner_class = "docker"
c.DockerSpawner.image = "needle-student"
c.DockerSpawner.network_name = "class"
c.DockerSpawner.remove = True
c.DockerSpawner.volumes = {
    str(CLASS / "homes/{username}"): "/home/student",
    str(CLASS / "exchange"): "/usr/local/share/nbgrader/exchange",  # where nbgrader looks for it
    str(CLASS / "passwd"): {"bind": "/etc/passwd", "mode": "ro"},
}
c.Spawner.mem_limit = "2G"
c.Spawner.cpu_limit = 2
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "NUMBA_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "HOME": "/home/student",
    "SHELL": "/bin/bash",  # a terminal would be plain sh, without earlier commands on the arrow keys
}
c.Spawner.http_timeout = 120
c.JupyterHub.concurrent_spawn_limit = 10  # when a class begins, the others wait a moment


def prepare(spawner):
    """Give a person a folder and a number of their own: nbgrader tells by the number who handed in what."""
    name, homes, passwd = spawner.user.name, CLASS / "homes", CLASS / "passwd"
    if not passwd.exists():
        passwd.write_text("root:x:0:0:root:/root:/bin/bash\n")
    numbers = {line.split(":")[0]: int(line.split(":")[2]) for line in passwd.read_text().splitlines()}
    number = numbers.get(name) or max(FIRST_NUMBER - 1, *numbers.values()) + 1
    if name not in numbers:
        with passwd.open("a") as file:  # the containers that run see it, too
            file.write(f"{name}:x:{number}:{number}::/home/student:/bin/bash\n")
    if not (CLASS / "exchange").exists():
        (CLASS / "exchange").mkdir()
        (CLASS / "exchange").chmod(0o1777)  # anybody may write there, but nobody moves what others wrote
    (homes / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(homes / name, number, number)
    spawner.extra_create_kwargs = {"user": f"{number}:{number}"}


c.Spawner.pre_spawn_hook = prepare

# The containers reach the hub by the network that they share with it, and nobody else does.
c.JupyterHub.hub_ip = os.environ.get("HUB_ADDRESS", "172.30.0.1")
c.JupyterHub.db_url = f"sqlite:///{CLASS / 'jupyterhub.sqlite'}"
c.JupyterHub.cleanup_servers = False  # what people have open goes on while the hub is started again
c.JupyterHub.cookie_secret_file = str(CLASS / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(CLASS / "proxy.pid")

# A server that nobody has used for an hour ends, and its memory is free. What was saved stays.
c.JupyterHub.services = [
    {"name": "idle-culler", "command": [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]}
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]
