"""The API within applications that real servers serve: mounted, behind a proxy, in several processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from duetime import Scheduler
from duetime.web import User, make_api
from tests.web.kit import BASE, make_scheduler

APP = """
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI

from duetime import Scheduler

scheduler = Scheduler("sqlite:///served.db")


@scheduler.task(name="where")
async def where() -> int:
    return os.getpid()


@asynccontextmanager
async def lifespan(app):
    async with scheduler.lifespan(app):
        app.state.begun = True
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/ops/tasks", scheduler.api())


@app.get("/own")
async def own() -> dict:
    return {"begun": app.state.begun, "pid": os.getpid()}


bare = FastAPI()
bare.mount("/duetime", scheduler.api())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "served_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def uvicorn(target: str, *arguments: str) -> AbstractContextManager[str]:
    """Serve an application, and give its address."""
    port = _free_port()
    return _running("uvicorn", target, "--port", str(port), "--log-level", "warning", *arguments, port=port)


def gunicorn(target: str, *arguments: str) -> AbstractContextManager[str]:
    """Serve one by uvicorn in processes of gunicorn's."""
    port = _free_port()
    worker = ["-k", "uvicorn.workers.UvicornWorker", "-b", f"127.0.0.1:{port}", "--log-level", "warning"]
    return _running("gunicorn", target, *worker, *arguments, port=port)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _running(*command: str, port: int) -> Iterator[str]:
    command = (sys.executable, "-m", *command)
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": "."}) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            _wait(address, process)
            yield address
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) in {0, -signal.SIGTERM}
        finally:
            process.kill()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            httpx.get(f"{address}/")
        except httpx.TransportError:
            time.sleep(0.05)  # Nothing tells when a server listens.
        else:
            return
    raise AssertionError("it has ended")


@pytest.fixture
async def token(folder: Path) -> str:
    async with Scheduler(f"sqlite:///{folder / 'served.db'}") as scheduler:
        return (await scheduler.tokens.add("ada", role="admin")).secret


@pytest.mark.timeout(120)
def test_mounted_beside_a_lifespan_in_several_processes(token: str) -> None:
    with uvicorn("served_app:app", "--workers", "2") as address, httpx.Client(base_url=address) as client:
        assert client.get("/own").json()["begun"] is True
        headers = {"Authorization": f"Bearer {token}"}
        made = client.post("/ops/tasks/api/v1/jobs", json={"task": "where"}, headers=headers)
        assert made.status_code == 201
        # The address of the job is below the mount.
        assert made.headers["location"] == f"/ops/tasks/api/v1/jobs/{made.json()['id']}"
        while (job := client.get(made.headers["location"], headers=headers).json())["state"] != "succeeded":
            assert job["state"] in {"pending", "running"}
        assert len(client.get("/ops/tasks/api/v1/workers", headers=headers).json()["items"]) == 2
        # A session that one process has begun is known to all, and ended by one for all.
        begun = client.post("/ops/tasks/api/v1/session", json={"token": token})
        assert "Path=/ops/tasks" in begun.headers["set-cookie"]
        cookie = {"Cookie": f"duetime_session={begun.cookies['duetime_session']}"}
        url = f"{address}/ops/tasks/api/v1/session"
        assert {httpx.get(url, headers=cookie).status_code for _ in range(20)} == {200}
        same = cookie | {"Sec-Fetch-Site": "same-origin"}
        assert httpx.delete(url, headers=same).status_code == 204


@pytest.mark.timeout(120)
@pytest.mark.parametrize("target", ["served_app:app", "served_app:bare"])
def test_by_gunicorn_in_several_processes(token: str, target: str) -> None:
    path = "/ops/tasks" if target.endswith("app") else "/duetime"
    with gunicorn(target, "-w", "2") as address:
        headers = {"Authorization": f"Bearer {token}"}
        made = httpx.post(f"{address}{path}/api/v1/jobs", json={"task": "where"}, headers=headers)
        assert made.status_code == 201
        found = [httpx.get(f"{address}{made.headers['location']}", headers=headers) for _ in range(10)]
        assert {(one.status_code, one.json()["task"]) for one in found} == {(200, "where")}


@pytest.mark.timeout(120)
def test_it_is_there_again_after_a_reload(token: str, folder: Path) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with uvicorn("served_app:app", "--reload") as address:
        before = httpx.get(f"{address}/own").json()["pid"]
        made = httpx.post(f"{address}/ops/tasks/api/v1/jobs", json={"task": "where"}, headers=headers)
        assert made.status_code == 201
        (folder / "served_app.py").write_text(f"{APP}\n# Changed.\n")
        pid = before
        while pid == before:
            try:
                pid = httpx.get(f"{address}/own").json()["pid"]
            except httpx.TransportError:
                time.sleep(0.05)  # Nothing tells when the new process listens.
        location = made.headers["location"]
        assert httpx.get(f"{address}{location}", headers=headers).json()["task"] == "where"


@pytest.mark.timeout(120)
def test_where_no_one_else_opens_the_scheduler_it_opens_itself(token: str) -> None:
    with uvicorn("served_app:bare") as address:
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/duetime/ready").json() == {"status": "ok"}
        assert httpx.get(f"{address}/duetime/api/v1/jobs", headers=headers).json()["items"] == []


@pytest.mark.timeout(120)
def test_behind_a_proxy_that_strips_a_path(token: str) -> None:
    with uvicorn("served_app:bare", "--root-path", "/public") as address:
        headers = {"Authorization": f"Bearer {token}"}
        made = httpx.post(
            f"{address}/duetime/api/v1/schedules/preview", json={"trigger": {"every": "1h"}}, headers=headers
        )
        assert made.status_code == 200
        begun = httpx.post(f"{address}/duetime/api/v1/session", json={"token": token})
        assert "Path=/public/duetime" in begun.headers["set-cookie"]


async def test_served_by_itself_it_opens_and_closes_its_scheduler(sqlite_url: str) -> None:
    scheduler = make_scheduler(sqlite_url)
    app = make_api(scheduler, authenticate=lambda _: User("ada"))
    sent: list[str] = []
    messages = iter(({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))

    async def receive() -> dict[str, str]:
        message = next(messages)
        assert scheduler.is_open == (message["type"] == "lifespan.shutdown")
        return message

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await app({"type": "lifespan"}, receive, send)  # type: ignore[arg-type]
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not scheduler.is_open


async def test_mounted_in_a_mount(sqlite_url: str) -> None:
    scheduler = make_scheduler(sqlite_url)
    inner, outer = FastAPI(), FastAPI()
    inner.mount("/tasks", scheduler.api(authenticate=lambda _: User("ada", "admin")))
    outer.mount("/ops", inner)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(scheduler)
        transport = httpx.ASGITransport(outer)
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=BASE))
        made = await client.post("/ops/tasks/api/v1/jobs", json={"task": "mail.send"})
        assert (await client.get(made.headers["location"])).json()["task"] == "mail.send"
