"""Who may do what, and how the dashboard says no."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.settings import broker_rows
from gantrymq.dashboard.accounts import Account, Accounts, make_account
from gantrymq.dashboard.api.configuration import CHANGEABLE, shown_value
from gantrymq.dashboard.api.table import ENDPOINTS
from gantrymq.dashboard.assets import FOR_GOOD
from gantrymq.dashboard.sessions import IDLE_S_MAX
from gantrymq.dashboard.settings import BODY_BYTES_MAX
from gantrymq.model.roles import Role
from gantrymq.store.settings import known_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.dashboard.calls import Endpoint
    from unit.dashboard.conftest import Desk

CHANGES = [each for each in ENDPOINTS if each.is_change]
ADMIN_ONLY = {
    "DELETE /api/topic", "DELETE /api/group", "POST /api/configuration",
    "POST /api/broker/writable", "GET /api/audit",
}  # fmt: skip


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def test_the_table_says_what_it_should() -> None:
    assert len({name_of(each) for each in ENDPOINTS}) == len(ENDPOINTS) >= 38
    assert {name_of(each) for each in ENDPOINTS if each.role is Role.ADMIN} == ADMIN_ONLY
    assert all(each.is_change == (each.method != "GET") for each in ENDPOINTS)
    own = {"POST /api/logout", "POST /api/password"}
    assert {name_of(each) for each in CHANGES if each.role is Role.VIEWER} == own


def test_every_endpoint_lets_in_the_roles_it_is_for_and_nobody_else(desk: Desk) -> None:
    who = {role: desk.headers_of(role.text) for role in Role}
    for endpoint in ENDPOINTS:
        data: dict[str, object] | None = {} if endpoint.is_change else None
        nobody = desk.ask(endpoint.method, endpoint.path, data=data)
        assert (nobody.status, nobody.kind) == (401, "login"), name_of(endpoint)
        for role in Role:
            answer = desk.ask(endpoint.method, endpoint.path, data=data, **who[role])
            expected = (200, "") if role >= endpoint.role else (403, "role")
            assert (answer.status, answer.kind) == expected, (name_of(endpoint), role)
    allowed = sum(sum(role >= each.role for role in Role) for each in ENDPOINTS)
    assert len(desk.called) == allowed


@pytest.mark.parametrize("endpoint", CHANGES, ids=name_of)
def test_a_change_without_the_right_token_is_refused(desk: Desk, endpoint: Endpoint) -> None:
    good = desk.headers_of("admin")
    other = desk.headers_of("admin")
    for headers in (
        {"cookie": good["cookie"]},
        {**good, "x_csrf_token": ""},
        {**good, "x_csrf_token": other["x_csrf_token"]},
    ):
        answer = desk.ask(endpoint.method, endpoint.path, data={}, **headers)
        assert (answer.status, answer.kind) == (403, "csrf")
    foreign = desk.ask(endpoint.method, endpoint.path, data={}, origin="http://evil", **good)
    assert (foreign.status, foreign.kind) == (403, "origin")
    plain = {**good, "content_type": "text/plain"}
    assert desk.ask(endpoint.method, endpoint.path, data=b"{}", **plain).status == 415
    assert desk.called == []
    own = desk.ask(endpoint.method, endpoint.path, data={}, origin="http://127.0.0.1:8080", **good)
    assert own.status == 200


def test_a_read_only_dashboard_changes_nothing(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(read_only=True)
    headers = desk.headers_of("admin")
    for endpoint in CHANGES:
        answer = desk.ask(endpoint.method, endpoint.path, data={}, **headers)
        expected = (200, "") if endpoint.is_own else (403, "readOnly")
        assert (answer.status, answer.kind) == expected, name_of(endpoint)
    assert desk.called == ["POST /api/logout admin", "POST /api/password admin"]


def test_every_change_is_written_down_with_who_and_what_came_of_it(desk: Desk) -> None:
    desk.ask("POST", "/api/topic", data={"topic": "T"}, **desk.headers_of("operator"))
    desk.ask("DELETE", "/api/topic", data={"topic": "T"}, **desk.headers_of("viewer"))
    told = [(e.user, e.action, e.outcome) for e in desk.parts.audit.newest_first()]
    assert told == [
        ("viewer", "delete a topic", "refused"),
        ("viewer", "log in", "done"),
        ("operator", "make or change a topic", "done"),
        ("operator", "log in", "done"),
    ]


def test_the_audit_log_tells_what_was_acted_on(desk: Desk) -> None:
    headers = desk.headers_of("admin")
    forged = {"topic": " T ", "group": "g", "name": "N"}
    desk.ask("POST", "/api/group?group=other", data=forged, **headers)
    desk.ask("DELETE", "/api/topic?topic=other", data={"name": "N"}, **headers)
    desk.ask("DELETE", "/api/topic", data={"topic": 7}, **headers)
    desk.ask("POST", "/api/topic", data={"topic": "A topic B"}, **headers)
    desk.ask("POST", "/api/configuration", data={"broker": "b", "name": "n", "id": 1}, **headers)
    told = [each.target for each in desk.parts.audit.newest_first()]
    assert told[:-1] == ["broker b name n", "topic 'A topic B'", "topic 7", "", "group g"]


def test_a_change_takes_nothing_from_its_address(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    headers = desk.headers_of("admin")
    for path in ("/api/topic?topic=T", "/api/group?group=g"):
        answer = desk.ask("DELETE", path, data={}, **headers)
        assert (answer.status, answer.data["error"]["text"][-10:]) == (400, "is missing")


def test_every_change_but_ones_own_says_what_it_is_about() -> None:
    assert {name_of(each) for each in CHANGES if not each.about} == {
        "POST /api/logout", "POST /api/password",
    }  # fmt: skip


def test_nothing_is_changed_that_cannot_be_written_down(desk: Desk) -> None:
    headers = desk.headers_of("admin")
    log = desk.parts.settings.data / "audit.jsonl"
    log.unlink()
    log.mkdir()
    answer = desk.ask("POST", "/api/topic", data={"topic": "T"}, **headers)
    assert (answer.status, answer.kind) == (502, "NotWritten")
    assert desk.called == []


def test_a_login_gives_a_cookie_that_scripts_and_other_sites_do_not_get(desk: Desk) -> None:
    (cookie,) = desk.log_in("viewer").cookies
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert "secure" not in parts
    assert "viewer" not in cookie


def test_a_hostile_cookie_costs_no_more_than_its_length(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking quotes off a cookie was quadratic for years (CVE-2024-7592); here it is not done."""

    def unquote(_text: str) -> str:
        pytest.fail("a cookie was unquoted")

    monkeypatch.setattr("http.cookies._unquote", unquote)
    hostile = 'gantrymq_session="' + '\\"' * 8000 + '"'
    assert desk.ask("GET", "/api/pipelines", cookie=hostile).status == 401
    assert desk.ask("GET", "/api/me", cookie=hostile).data["user"] is None
    good = desk.headers_of("viewer")["cookie"]
    told = desk.ask("GET", "/api/me", cookie=f"a=b;  c; =d; {good}; e")
    assert told.data["user"] == "viewer"


def test_a_cookie_of_an_encrypted_dashboard_is_sent_encrypted_alone(
    make_desk: Callable[..., Desk], tmp_path: Path
) -> None:
    desk = make_desk(stubs=False, certificate=tmp_path / "x.pem", key=tmp_path / "x.pem")
    given = desk.log_in("viewer")
    assert "; secure" in given.cookies[0].lower()
    taken = desk.ask("POST", "/api/logout", data={}, **desk.headers_of("viewer"))
    assert "; secure" in taken.cookies[0].lower()


def test_wrong_names_and_passwords_are_told_the_same(desk: Desk) -> None:
    wrong, unknown = desk.log_in("admin", "x"), desk.log_in("nobody", "x")
    assert (wrong.status, wrong.body) == (unknown.status, unknown.body) == (401, wrong.body)
    assert wrong.cookies == []
    outcomes = [(e.user, e.outcome) for e in desk.parts.audit.newest_first()]
    assert outcomes == [("nobody", "refused"), ("admin", "refused")]


def test_guessing_stops_after_some_tries(desk: Desk) -> None:
    told = [desk.log_in("admin", f"guess {number}").status for number in range(12)]
    assert told == [401] * 10 + [429] * 2
    assert desk.log_in("admin").status == 429
    desk.clock.jump(61)
    assert desk.log_in("admin").status == 200


def test_people_behind_a_named_proxy_are_told_apart(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(proxies=("127.0.0.0/8",))
    data = {"user": "admin", "password": "a guess"}
    for _ in range(12):
        last = desk.ask("POST", "/api/login", data=data, x_forwarded_for="10.0.0.9")
    assert last.status == 429
    # What a browser sends itself stands in front of what the proxy saw.
    forged = desk.ask("POST", "/api/login", data=data, x_forwarded_for="10.0.0.7, 10.0.0.9")
    assert forged.status == 429
    right = {"user": "admin", "password": "long enough"}
    good = desk.ask("POST", "/api/login", data=right, x_forwarded_for="10.0.0.8",
                    x_forwarded_proto="https")  # fmt: skip
    assert good.status == 200
    assert "; secure" in good.cookies[0].lower()
    assert {(each.address, each.outcome) for each in desk.parts.audit.newest_first()} == {
        ("10.0.0.9", "refused"), ("10.0.0.8", "done"),
    }  # fmt: skip


def test_nobody_else_is_believed_who_they_are(make_desk: Callable[..., Desk]) -> None:
    for proxies in ((), ("10.1.0.0/16",)):
        desk = make_desk(proxies=proxies)
        desk.ask("POST", "/api/login", data={"user": "admin", "password": "x"},
                 x_forwarded_for="10.0.0.9")  # fmt: skip
        assert next(iter(desk.parts.audit.newest_first())).address == "127.0.0.1"


def test_a_session_ends_with_time_with_logout_and_with_the_account(desk: Desk) -> None:
    headers = desk.headers_of("viewer")
    assert desk.ask("GET", "/api/topics", **headers).status == 200
    desk.clock.jump(IDLE_S_MAX + 1)
    assert desk.ask("GET", "/api/topics", **headers).status == 401
    headers = desk.headers_of("viewer")
    desk.parts.accounts.put(make_account("viewer", Role.VIEWER, "another one"))
    assert desk.ask("GET", "/api/topics", **headers).status == 401
    headers = desk.headers_of("operator")
    desk.parts.accounts.delete("operator")
    assert desk.ask("GET", "/api/topics", **headers).status == 401


def test_logging_out_ends_this_session_alone(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    one, other = desk.headers_of("viewer"), desk.headers_of("viewer")
    assert desk.ask("POST", "/api/logout", data={}, **one).status == 200
    assert desk.ask("GET", "/api/me", **one).data["user"] is None
    assert desk.ask("GET", "/api/me", **other).data["user"] == "viewer"


def test_ones_own_password(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    headers = desk.headers_of("viewer")
    wrong = desk.ask("POST", "/api/password", data={"old": "x", "new": "another one"}, **headers)
    assert wrong.status == 400
    good = {"old": "long enough", "new": "another one"}
    assert desk.ask("POST", "/api/password", data=good, **headers).status == 200
    assert desk.ask("GET", "/api/topics", **headers).status == 401
    assert desk.log_in("viewer", "another one").status == 200


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_password_change_brings_nobody_back(
    make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    desk = make_desk(stubs=False)
    headers = desk.headers_of("admin")

    def make_slowly(name: str, role: Role, password: str) -> Account:
        accounts = Accounts(desk.parts.settings.data)
        if is_deleted:
            accounts.delete(name)
        else:
            accounts.put(make_account(name, Role.VIEWER, "long enough"))
        return make_account(name, role, password)

    monkeypatch.setattr("gantrymq.dashboard.api.login.make_account", make_slowly)
    data = {"old": "long enough", "new": "another one"}
    answer = desk.ask("POST", "/api/password", data=data, **headers)
    assert answer.status == 400
    found = desk.parts.accounts.get("admin")
    assert (found is None) if is_deleted else (found is not None and found.role is Role.VIEWER)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200), ("localhost:8080", 200), ("[::1]:8080", 200),
        ("evil.example:8080", 421), ("127.0.0.1.evil.example", 421), ("", 421),
        ("192.168.1.4:8080", 421),
    ],
)  # fmt: skip
def test_only_names_of_this_machine_are_answered_on_loopback(
    desk: Desk, host: str, status: int
) -> None:
    for path in ("/", "/api/me"):
        assert desk.ask("GET", path, host=host).status == status


def test_a_name_can_be_allowed_and_others_are_not(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(bind="0.0.0.0", hosts=("mq.example",))  # noqa: S104
    assert desk.ask("GET", "/", host="MQ.example").status == 200
    assert desk.ask("GET", "/", host="other.example").status == 421


@pytest.mark.parametrize("path", ["/", "/api/topics", "/nothing", "/api/nothing", "/api/me"])
def test_every_answer_has_the_headers(desk: Desk, path: str) -> None:
    headers = desk.ask("GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/../accounts.json", "/js/../../app.py", "/%2e%2e/app.py", "//etc/passwd", "/js"]
)
def test_only_the_pages_own_files_are_served(desk: Desk, path: str) -> None:
    assert desk.ask("GET", path).status == 404


def test_a_file_that_the_browser_has_is_not_sent_again(desk: Desk) -> None:
    first = desk.ask("GET", "/")
    again = desk.ask("GET", "/", if_none_match=first.headers["etag"])
    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert first.headers["cache-control"] == "no-cache"
    (script,) = re.findall(r'<script[^>]* src="([^"]+)"', first.body.decode())
    kept = desk.ask("GET", script)
    assert (kept.status, kept.headers["cache-control"]) == (200, FOR_GOOD)
    assert desk.ask("GET", "/js/app.js").status == 404


def test_other_methods_and_bodies_are_refused(desk: Desk) -> None:
    headers = desk.headers_of("admin")
    answer = desk.ask("PUT", "/api/topic", data={}, **headers)
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, POST")
    assert desk.ask("POST", "/api/topic", data=b"[1]", **headers).status == 400
    assert desk.ask("POST", "/api/topic", data=b"\xff", **headers).status == 400
    large = b"x" * (BODY_BYTES_MAX + 1)
    assert desk.ask("POST", "/api/topic", data=large, **headers).status == 413
    assert desk.called == []


def test_without_login_a_change_still_needs_the_header(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(login=False)
    header = {"x_csrf_token": "none"}
    assert desk.ask("GET", "/api/topics").status == 200
    assert desk.ask("POST", "/api/topic", data={}).status == 403
    assert desk.ask("POST", "/api/topic", data={}, **header).status == 200
    foreign = desk.ask("POST", "/api/topic", data={}, origin="http://evil", **header)
    assert foreign.status == 403


def test_what_can_be_changed_is_what_a_broker_takes_while_it_runs() -> None:
    live = {name for _attribute, row in broker_rows() if row.live for name in row.names}
    live |= {name for row in known_settings() if row.live for name in row.names}
    assert live >= CHANGEABLE
    assert not any(word in name.lower() for name in CHANGEABLE for word in ("path", "addr", "key"))


def test_secrets_among_settings_are_not_shown() -> None:
    assert shown_value("tls.server.keyPassword", "x") == "••••••"
    assert shown_value("accessKey", "x") == "••••••"
    assert shown_value("accessKey", "") == ""
    assert shown_value("brokerName", "x") == "x"
    user = '{"username":"admin","password":"x"}'
    for name in ("initAuthenticationUser", "innerClientAuthenticationUser"):
        assert shown_value(name, "x") == "••••••"
    for value in (user, '{"accessKey":"a","secretKey":"b"}', "SECRET=1"):
        assert shown_value("anything", value) == "••••••"
