"""Database URLs: one way to read them, and one to show them without their secrets."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from duetime.errors import ConfigError
from duetime.model.text import did_you_mean, shown

W = TypeVar("W", bound=str)

URL_EXAMPLES: Final = (
    "sqlite:///jobs.db, postgresql://user:password@host/database, mariadb://user:password@host/database "
    "or redis://host:6379/0"
)
LONGEST_URL: Final = 4_096
"""Characters of a URL."""
MOST_SHOWN: Final = 20_000
"""Characters of a text that are searched for passwords and shown; the longest traceback that is kept has fewer."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")
_NAME: Final = re.compile(r"[^\s\"<>@\[\\\]^`{|}]+")
_PORTS: Final = range(1, 65_536)
_HIDDEN: Final = "***"
_SECRETS: Final = re.compile(r"pass(?!file)|pwd|secret|token", re.IGNORECASE)
"""What is in the names of options whose values are not shown."""
# Neither pattern backtracks, so lines of any length can be searched.
_URL_IN_TEXT: Final = re.compile(r"""(?<=["'])[\w+.-]{1,31}://[^"'\n]*@\S*|://\S+""")
"""In quotes, as in a line of source code, a password may contain spaces."""
_OPTION_IN_TEXT: Final = re.compile(r"(?P<before>[?&](?P<name>[^\s?&=]+)=)(?P<value>[^\s&]*)")
_HYBRID: Final = "hybrid+"
HYBRID_OPTIONS: Final = ("far", "near", "near_up_to", "memory_up_to", "far_queues")
_HYBRID_EXAMPLE: Final = "hybrid+redis://cache/0?far=postgresql://db/app"
_ENCODE: Final = "percent-encode user and password: urllib.parse.quote(password, safe='')"


class UrlHost(NamedTuple):
    """One place of a URL; a name that begins with a slash is a folder with a socket."""

    name: str
    port: int | None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrl:
    """A URL of a server, decoded."""

    scheme: str
    user: str | None
    password: str | None = field(repr=False)
    hosts: tuple[UrlHost, ...]
    path: str
    """What follows the hosts, with its slash."""
    options: dict[str, str] = field(repr=False)


def scheme_of(url: object) -> str:
    """Return the scheme in lower case; raise `ConfigError` if this is no URL, or an endless one."""
    if isinstance(url, str) and len(url) > LONGEST_URL:
        raise ConfigError(f"a database URL has at most {LONGEST_URL:,} characters; this one has {len(url):,}")
    scheme, colon, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not colon or not _SCHEME.fullmatch(scheme):
        raise ConfigError(f"a database URL looks like {URL_EXAMPLES}; this one has no ://")
    return scheme.lower()


def parse_url(url: str, *, options: Collection[str] | None = None) -> DatabaseUrl:
    """Read the URL of a server, which may have these options, or any.

    Raises `ConfigError` for anything that is not certain, such as a password with a bare slash: read in another way, it
    would be taken for a host or a port, and a part of it be sent or shown. No message repeats what may be a password.
    """
    scheme, login, hosts, path, query = _split(url)
    user, colon, password = (login or "").partition(":")
    found = DatabaseUrl(
        scheme=scheme,
        user=unquote(user) or None,
        password=unquote(password) if colon else None,
        hosts=parse_hosts(hosts),
        path=unquote(path),
        options=parse_options(query, options),
    )
    if "\0" in "".join((found.user or "", found.password or "", found.path, *found.options.values())):
        raise ConfigError("the URL has a NUL (%00) in it, which no server accepts; remove it")
    return found


def parse_hosts(text: str) -> tuple[UrlHost, ...]:
    """Read hosts and their ports, separated by commas."""
    places = text.split(",") if text else []
    if len(places) > 1 and not all(places):
        raise ConfigError("the URL has an empty place in its list of hosts; write host1:port,host2:port")
    return tuple(map(_host, places))


class HybridUrl(NamedTuple):
    """The parts of a URL that names several stores."""

    near: str
    """The URL of the near store."""
    far: str
    options: dict[str, str]
    """The other options of the hybrid itself, as they are written."""


def parse_hybrid(url: str) -> HybridUrl:
    """Read the URL of a hybrid: options that are not its own are those of the near store."""
    place, _, query = url[len(_HYBRID) :].partition("?")
    own, rest = dict[str, str](), list[str]()
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name not in HYBRID_OPTIONS:
            rest.append(option)
        elif name in own or not value:
            problem = "more than once" if value else "without a value"
            raise ConfigError(f"the option {name} is in the URL {problem}; write it once: {_HYBRID_EXAMPLE}")
        else:
            own[name] = value
    if "far" not in own:
        raise ConfigError(f"the URL names no far store; write {_HYBRID_EXAMPLE}")
    near = f"{place}?{'&'.join(rest)}" if rest else place
    options = {name: unquote(value) for name, value in own.items()}
    # Encoded or not: what is written as a URL is one as it stands, with its own percent-encoding.
    far = own["far"] if "://" in own["far"] else options["far"]
    del options["far"]
    if any(scheme_of(one).startswith(_HYBRID) for one in (near, far)):
        raise ConfigError(f"a hybrid cannot be a part of another one; write {_HYBRID_EXAMPLE}")
    return HybridUrl(near, far, options)


def parse_options(query: str, known: Collection[str] | None) -> dict[str, str]:
    """Read the part after the question mark; refuse unknown names and empty values."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if known is not None and name not in known:
            offer = did_you_mean(name, known)
            text = (
                f"unknown option {shown(name)}; {offer and f'{offer} '}options are {', '.join(sorted(known))}"
            )
            raise ConfigError(text)
        if not value:
            raise ConfigError(f"the option {name} in the URL has no value; give it one, or leave it out")
    return options


def take_number(options: dict[str, str], name: str, default: int, *, most: int) -> int:
    """Take out an option that is a number from 1 on."""
    given = options.pop(name, str(default))
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise ConfigError(f"{name} must be a number from 1 to {most}, not {shown(given)}")
    return int(given)


def take_choice(options: dict[str, str], name: str, allowed: tuple[W, ...]) -> W:
    """Take out an option that is one of a few words, in any case; the first is the default."""
    given = options.pop(name, allowed[0])
    for word in allowed:
        if word.lower() == given.lower():
            return word
    raise ConfigError(f"{name} must be one of {', '.join(allowed)}, not {shown(given)}")


def redact(url: str) -> str:
    """Return a URL to show: without its password, and all but its scheme hidden if it cannot be read."""
    scheme, colon, rest = url.partition("://")
    hidden = f"{scheme}://{_HIDDEN}" if colon and _SCHEME.fullmatch(scheme) else _HIDDEN
    try:
        if scheme_of(url).startswith(_HYBRID):
            near, far, options = parse_hybrid(url)
            written = "&".join(f"{name}={quote(value)}" for name, value in options.items())
            near = f"{_HYBRID}{redact(near)}"
            return f"{near}{'&' if '?' in near else '?'}far={redact(far)}{written and '&' + written}"
        if scheme_of(url).partition("+")[0] == "sqlite":
            # A path may contain anything; only a mistaken URL of this kind has a host.
            return url if rest[:1] in {"", "/", "?"} else hidden
        scheme, login, hosts, path, query = _split(url)
        parse_hosts(hosts)
    except ConfigError:
        return hidden
    user, colon, _ = (login or "").partition(":")
    shown_login = "" if login is None else f"{user}{colon and ':' + _HIDDEN}@"
    shown_query = _OPTION_IN_TEXT.sub(_redacted_option, f"?{query}") if query else ""
    return f"{scheme}://{shown_login}{hosts}{path}{shown_query}"


def redact_text(text: str) -> str:
    """Return a text with the passwords of the URLs in it hidden, cut in its middle if it is very long."""
    if len(text) > MOST_SHOWN:
        text = _cut(text)
    if "://" not in text and "=" not in text:
        return text
    return _OPTION_IN_TEXT.sub(_redacted_option, _URL_IN_TEXT.sub(_redacted_login, text))


def _cut(text: str) -> str:
    """Return the beginning and the end of a text, without the words that the cut goes through: one may be a URL."""
    half = MOST_SHOWN // 2
    head, tail = re.sub(r"(?<!\S)\S+\Z", "", text[:half]), re.sub(r"\A\S+", "", text[-half:])
    return f"{head}… {len(text) - len(head) - len(tail):,} characters cut …{tail}"


def _split(url: str) -> tuple[str, str | None, str, str, str]:
    """Return the scheme, the login if there is one, the hosts, the path and the query, all as they are written."""
    scheme = scheme_of(url)
    if " " in url or not url.isprintable():
        raise ConfigError(f"the URL has a space, a line break or a control character in it; {_ENCODE}")
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    behind = rest[len(authority) :]
    if "#" in behind or "@" in behind:
        bare = "a bare /, ? or # before its last @, or a bare # or @ behind its host"
        raise ConfigError(f"the URL has {bare}; {_ENCODE}, and elsewhere write %23 for # and %40 for @")
    login, at, hosts = authority.rpartition("@")
    path, _, query = behind.partition("?")
    return scheme, login if at else None, hosts, path, query


def _host(place: str) -> UrlHost:
    if place.startswith("["):
        name, bracket, behind = place[1:].partition("]")
        colon, port = behind[:1], behind[1:]
        good = bool(bracket) and ":" in name and colon in {"", ":"}
    else:
        name, _, port = place.partition(":")
        good = ":" not in port
    name = unquote(name)
    try:
        # What has no such form cannot be asked for, and drivers raise an error that says nothing.
        name.removesuffix(".").encode("idna")
    except UnicodeError:
        good = good and name.startswith("/")
    if not good or not (_NAME.fullmatch(name or "localhost") and name.isprintable()):
        raise ConfigError(f"the host in the URL is not one; write host:port or [IPv6]:port; {_ENCODE}")
    if port and not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) in _PORTS):  # noqa: PLR2004 -- digits
        # Not repeated in the message: without a host, a password is in this place.
        raise ConfigError(f"the port in the URL is not a number from 1 to {_PORTS[-1]}; write host:port")
    return UrlHost(name or "localhost", int(port) if port else None)


def _redacted_option(found: re.Match[str]) -> str:
    if _SECRETS.search(unquote(found["name"])):
        return f"{found['before']}{_HIDDEN}"
    # The URL of another store may be an option of one, and percent-encoded as a whole.
    value = unquote(found["value"])
    nested = "://" in value and "://" not in found["value"]
    return found["before"] + (redact_text(value) if nested else found["value"])


def _redacted_login(found: re.Match[str]) -> str:
    url = found[0]
    colon, at = url.find(":", url.index("://") + len("://")), url.rfind("@")
    return f"{url[:colon]}:{_HIDDEN}{url[at:]}" if 0 < colon < at else url
