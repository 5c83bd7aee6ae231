"""`duetime schedules history`."""

from __future__ import annotations

from tests.acceptance.kit import duetime, from_json
from tests.acceptance.schedules.kit import put


def test_the_history_of_what_never_was_ends_with_3() -> None:
    put()
    unknown = duetime("schedules", "history", "nightlie")
    assert (unknown.exit_code, "did you mean nightly?" in unknown.stderr) == (3, True)


def test_the_history_tells_who_did_what() -> None:
    put("nightly", "shop.slow", "--cron", "0 3 * * *", "--by", "ann")
    put("nightly", "shop.slow", "--cron", "0 4 * * *", "--queue", "mail", "--timeout", "90s", "--by", "bob")
    moment = "2090-01-31T09:00:00Z"
    duetime("schedules", "pause", "nightly", "--reason", "moving", "--until", moment, "--by", "eve")
    changes = from_json("schedules", "history", "nightly")
    assert [(change["who"], change["verb"]) for change in changes] == [
        ("eve", "pause"),
        ("bob", "put"),
        ("ann", "put"),
    ]
    text = duetime("schedules", "history", "nightly", "--limit", "2").stdout
    assert "trigger: at 03:00 every day, UTC → at 04:00 every day, UTC" in text
    assert "queue: default → mail" in text
    assert "timeout: none → 1 minute 30 seconds" in text
    assert "reason: moving, until: 2090-01-31 09:00:00+00:00" in text
    assert "ann" not in text
    assert changes[0]["detail"] == {"reason": "moving", "until": "2090-01-31T09:00:00Z"}
    assert changes[1]["detail"]["timeout"] == [None, 90.0]
    assert changes[1]["detail"]["trigger"] == ["at 03:00 every day, UTC", "at 04:00 every day, UTC"]
