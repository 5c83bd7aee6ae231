from __future__ import annotations

import string
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from duetime.errors import ConfigError
from duetime.model.urls import LONGEST_URL, MOST_SHOWN, DatabaseUrl, UrlHost, parse_url, redact, redact_text
from duetime.stores.open import open_store

pytestmark = pytest.mark.covers("password-in-message")

SCHEMES = (
    "postgresql",
    "postgresql+asyncpg",
    "mariadb",
    "mysql",
    "redis",
    "rediss",
    "redis+sentinel",
    "unix",
)
ODD = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("#/?@:%[]&=+,;\\ \0\n\x1b\"'"), min_size=1
)
CORES = st.text(string.ascii_uppercase, min_size=8, max_size=8)
"""What is looked for in messages, which have no such words."""


def part_of(core: str, text: str) -> bool:
    """Whether a text contains four letters in a row of a password."""
    return any(core[at : at + 4] in text for at in range(len(core) - 3))


def test_a_url_is_read() -> None:
    url = parse_url("PostgreSQL://a%2Fb:s:e@c%23ret@one:1,[::1]:2,%2Frun%2Fpg/my%20db?pool=3&host=x")
    assert url == DatabaseUrl(
        scheme="postgresql",
        user="a/b",
        password="s:e@c#ret",
        hosts=(UrlHost("one", 1), UrlHost("::1", 2), UrlHost("/run/pg", None)),
        path="/my db",
        options={"pool": "3", "host": "x"},
    )
    assert ",".join(map(str, url.hosts)) == "one:1,[::1]:2,/run/pg"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s:e@cret@host:5/db?pool=3", "postgresql://me:***@host:5/db?pool=3"),
        ("postgresql://me:@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?sslpassword=s&sslkey=k", "postgresql://host/db?sslpassword=***&sslkey=k"),
        ("postgresql://host/db?ssl%70assword=s", "postgresql://host/db?ssl%70assword=***"),
        ("postgresql://host/db?passfile=f&password=s", "postgresql://host/db?passfile=f&password=***"),
        ("redis://:secret@host", "redis://:***@host"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite:///a@b#c:d.db", "sqlite:///a@b#c:d.db"),
        ("sqlite://", "sqlite://"),
        ("sqlite://me:secret@host/db", "sqlite://***"),
        (
            "hybrid+redis://:secret@cache/0?pool=3&far=postgresql://me:se%40cret@db/app&near_up_to=5m",
            "hybrid+redis://:***@cache/0?pool=3&far=postgresql://me:***@db/app&near_up_to=5m",
        ),
        (
            f"hybrid+sqlite:///near.db?far={quote('postgresql://me:secret@db/app?sslpassword=secret', safe='')}",
            "hybrid+sqlite:///near.db?far=postgresql://me:***@db/app?sslpassword=***",
        ),
        ("hybrid+redis://:secret@cache/0", "hybrid+redis://***"),
        ("hybrid+redis://cache?far=postgresql://me:se/cret@db", "hybrid+redis://cache?far=postgresql://***"),
        ("postgresql://me:se/cret@host/db", "postgresql://***"),
        ("postgresql://me:se#cret@host/db", "postgresql://***"),
        ("postgresql://me:secret", "postgresql://***"),
        ("me:secret@host/db", "***"),
        (f"postgresql://me:secret@host/{'x' * LONGEST_URL}", "postgresql://***"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redact(url) == shown


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("at postgresql://me:secret@db/app.", "at postgresql://me:***@db/app."),
        ("postgresql+asyncpg://me:se:c@r/et@db/app", "postgresql+asyncpg://me:***@db/app"),
        (
            "at hybrid+redis://cache?far=postgresql%3A%2F%2Fme%3Asecret%40db%2Fapp, near",
            "at hybrid+redis://cache?far=postgresql://me:***@db/app, near",
        ),
        (
            "hybrid+redis://:secret@cache?far=postgresql://me:secret@db/app",
            "hybrid+redis://:***@db/app",
        ),
        ("postgresql://:secret@db", "postgresql://:***@db"),
        ("postgresql://db/app?user=me&password=secret&x=1", "postgresql://db/app?user=me&password=***&x=1"),
        ("postgresql://db/app?sslPassword=secret", "postgresql://db/app?sslPassword=***"),
        ("postgresql://me@db:5432/app", "postgresql://me@db:5432/app"),
        ("postgresql://me@corp:secret@db", "postgresql://me@corp:***@db"),
        ("postgresql://a/b:secret@db", "postgresql://a/b:***@db"),
        ('Scheduler("postgresql://me:my secret@db/app")', 'Scheduler("postgresql://me:***@db/app")'),
        ("'postgresql://me:my'secret@db' @ x", "'postgresql://me:***@db' @ x"),
        ("'http://h:80/' of 'me@x'", "'http://h:80/' of 'me@x'"),
        (f"postgresql://{'x' * 400}:secret@db", f"postgresql://{'x' * 400}:***@db"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_passwords_in_a_text_are_hidden(text: str, safe: str) -> None:
    assert redact_text(text) == safe


@pytest.mark.parametrize("text", ["x" * 20_000, "a://b:" * 3_000, "?a=" * 6_000, "://" * 6_000])
def test_to_look_for_passwords_in_a_long_line_is_no_work(text: str) -> None:
    assert redact_text(text) == text


@given(
    before=ODD,
    core=CORES,
    after=ODD,
    start=st.sampled_from([f"{scheme}://{user}" for scheme in SCHEMES for user in ("", "ann")]),
)
def test_no_message_has_a_part_of_a_password_however_it_was_written(
    before: str, core: str, after: str, start: str
) -> None:
    url = f"{start}:{before}{core}{after}@db.example/0"
    said = redact(url)
    try:
        parsed = parse_url(url)
    except ConfigError as error:
        said += str(error)
    else:
        assert (parsed.hosts, parsed.path) == ((UrlHost("db.example", None),), "/0")
        said += repr(parsed)
    try:
        store = open_store(url)
    except ConfigError as error:
        said += str(error)
    else:
        said += repr(store)
    assert not part_of(core, said)


@given(password=ODD.filter(lambda text: "\0" not in text), scheme=st.sampled_from(SCHEMES))
def test_a_password_that_is_encoded_is_read_as_it_was_and_hidden_everywhere(
    password: str, scheme: str
) -> None:
    url = f"{scheme}://ann:{quote(password, safe='')}@db.example/0"
    assert parse_url(url).password == password
    assert redact(url) == f"{scheme}://ann:***@db.example/0"
    assert redact_text(f"no {url}, alas") == f"no {scheme}://ann:***@db.example/0, alas"


@given(
    before=ODD,
    core=CORES,
    after=ODD,
    start=st.sampled_from([f"{scheme}://ann" for scheme in SCHEMES]),
    encoded=st.booleans(),
)
def test_no_message_has_a_part_of_the_password_of_a_far_store(
    before: str, core: str, after: str, start: str, *, encoded: bool
) -> None:
    far = f"{start}:{before}{core}{after}@db.example/0"
    url = f"hybrid+redis://cache?far={quote(far, safe='') if encoded else far}&near_up_to=5m"
    said = redact(url)
    try:
        open_store(url)
    except ConfigError as error:
        said += str(error)
    assert not part_of(core, said)


@given(
    password=ODD.filter(lambda text: "\0" not in text), scheme=st.sampled_from(SCHEMES), encoded=st.booleans()
)
def test_the_password_of_a_far_store_is_hidden_in_any_text(
    password: str, scheme: str, *, encoded: bool
) -> None:
    far = f"{scheme}://ann:{quote(password, safe='')}@db.example/0"
    url = f"hybrid+redis://cache?far={quote(far, safe='') if encoded else far}"
    assert redact(url) == f"hybrid+redis://cache?far={scheme}://ann:***@db.example/0"
    assert redact_text(f"no {url}, alas").endswith(":***@db.example/0, alas")


@given(
    url=st.text()
    | ODD.map("postgresql://{}".format)
    | ODD.map("redis://a:{}".format)
    | ODD.map("mariadb://h/d?{}".format)
    | ODD.map("hybrid+redis://h?far={}".format)
    | ODD.map("hybrid+redis://h?far=redis://{}".format)
)
def test_any_text_is_a_url_or_is_refused_as_one(url: str) -> None:
    redact(url)
    redact_text(url)
    try:
        open_store(url)
    except ConfigError as error:
        assert len(str(error)) < 500  # noqa: PT017 -- most are refused, some are not


@pytest.mark.covers("log-lines")
@pytest.mark.timeout(20)
def test_an_endless_text_is_cut_before_it_is_searched_and_no_url_is_cut_through() -> None:
    assert len(redact_text("://a:" * 500_000)) < 200
    url = "redis://ann:secret@db.example/0"
    filler = "x " * MOST_SHOWN
    for shift in range(0, 40, 3):
        half = filler[: MOST_SHOWN // 2 - shift]
        shown = redact_text(f"{half}{url} {filler}{url}{half[::-1]}")
        assert len(shown) < MOST_SHOWN + 100
        assert "characters cut" in shown
        assert "ecre" not in shown
