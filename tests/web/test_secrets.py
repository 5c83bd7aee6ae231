from __future__ import annotations

from duetime import Scheduler, Secret
from duetime.model.ids import new_job_id
from duetime.testing import drain
from tests.web.kit import serving

WORD = "correct horse"


async def test_what_is_secret_is_masked_in_every_answer(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    seen: list[str] = []

    @scheduler.task(name="login")
    async def login(password: Secret[str]) -> Secret[str]:
        seen.append(password)
        raise PermissionError(f"not {password}")

    body = {"task": "login", "arguments": {"password": WORD}}
    async with serving(scheduler) as api:
        own = await api.ok("POST", "/jobs", json=body)
        trigger = {"trigger": {"every": "1h"}}
        await api.ok("PUT", "/schedules/logins", json=body | trigger)
        fired = await api.ok("POST", "/schedules/logins/trigger")
        await drain(scheduler)
        assert seen == [WORD, WORD]
        again = await api.ok("POST", f"/jobs/{own['id']}/rerun", json={})
        for path in (
            "/jobs", "/failures", "/schedules", "/schedules/logins", "/schedules/logins/history", "/audit",
            *(f"/jobs/{job['id']}{more}" for job in (own, fired, again) for more in ("", "/attempts", "/logs", "/explain")),
        ):  # fmt: skip
            answered = await api.get(path)
            assert answered.status_code == 200
            assert WORD not in answered.text, path
        await drain(scheduler)
        assert seen == [WORD] * 3


async def test_a_request_that_is_repeated_is_compared_with_what_is_stored(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="login")
    async def login(password: Secret[str]) -> None: ...

    own = new_job_id()
    async with serving(scheduler) as api:
        for password, status in ((WORD, 201), (WORD, 200), ("hunter2", 409)):
            body = {"task": "login", "arguments": {"password": password}}
            answered = await api.put(f"/jobs/{own}", json=body)
            assert answered.status_code == status
            assert password not in answered.text
