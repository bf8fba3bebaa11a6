"""`users.toml`: what it says, what cannot be said in it, and that it is written as it is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue
from gantrymq.model.roles import Role
from gantrymq.security import user_file
from gantrymq.security.accounts import Permission, Secret
from gantrymq.security.sealing import SealKey
from gantrymq.security.user_file import RoleEntry, UserEntry, UserFile, built_users
from gantrymq.security.users import ACTIONS, Rule

KEY = SealKey(bytes(32))
SEALED = KEY.seal("anna", Secret("secret-of-anna"))
FILE = f"""\
[roles.shop]
base = "viewer"
rules = [
  {{ topics = ["Orders", "Payments*"], actions = ["publish", "subscribe"] }},
  {{ groups = ["shop-*"], actions = ["subscribe"] }},
]

[users.anna]
role = "shop"
secret = "{SEALED}"
rules = [ {{ topics = ["Audit"], actions = ["publish"] }} ]

[users."ben@example.com"]
role = "admin"

[users.carl]
certificates = ["uri:spiffe://shop/carl", "dns:carl.example.com", "cn:Carl Müller"]
"""


def test_a_file_is_read() -> None:
    users = built_users(user_file.read(FILE.encode()), KEY)
    anna, ben, carl = users["anna"], users["ben@example.com"], users["carl"]
    assert anna.secret == Secret("secret-of-anna")
    assert (anna.level, ben.level, carl.level) == (Role.VIEWER, Role.ADMIN, Role.NONE)
    for resource, wanted, may in (
        ("Orders", Permission.PUB, True),
        ("Orders2", Permission.PUB, False),
        ("PaymentsOfMay", Permission.SUB, True),
        ("Payments", Permission.SUB, True),
        ("Audit", Permission.PUB, True),
        ("Audit", Permission.SUB, False),
        ("%RETRY%shop-1", Permission.SUB, True),
        ("%RETRY%shop", Permission.SUB, False),
        ("Orders", Permission.MANAGE, False),
        ("Elsewhere", Permission.LOOK, True),  # a viewer
    ):
        assert anna.may(resource, wanted) is may, (resource, wanted)
        assert ben.may(resource, wanted)
        assert not carl.may(resource, wanted)


def test_certificates_are_the_named_ones_or_the_one_of_the_name() -> None:
    file = user_file.read(FILE.encode())
    users = built_users(file, KEY)
    assert users["anna"].certificates == ("cn:anna",)
    assert users["carl"].certificates == (
        "uri:spiffe://shop/carl", "dns:carl.example.com", "cn:Carl Müller",
    )  # fmt: skip
    assert user_file.read(user_file.written(file)) == file


def test_any_name_of_a_certificate_is_written_so_that_it_can_be_read() -> None:
    names = tuple(f"cn:a{chr(code)}" for code in (1, 9, 0x1F, 0x22, 0x5C, 0x7F, 0x85, 0x2028))
    file = UserFile(users={"a": UserEntry(role="admin", certificates=(*names, "cn:\U0001f511"))})
    assert user_file.read(user_file.written(file)) == file


def test_a_name_of_a_certificate_is_text() -> None:
    with pytest.raises(InvalidValue, match="is no name of a certificate"):
        user_file.check_certificate("cn:a\udcff", "users.a")


def test_nothing_that_prints_shows_a_secret() -> None:
    file = user_file.read(FILE.encode())
    for text in (repr(file), repr(built_users(file, KEY)), str(file.users["anna"])):
        assert "secret-of-anna" not in text
        assert SEALED not in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("users = 3", r"users is no table: write \[users.NAME\]"),
        ("[users]\nanna = 1", r"users.anna is no table"),
        ("[user.anna]", r"'user' means nothing here; known are roles, users"),
        ("[users.anna]\nroles = 'admin'", "users.anna: 'roles' means nothing here"),
        ("[users.anna]\nrole = 'boss'", r"role is 'boss', which is no role.*define \[roles.boss\]"),
        ("[users.anna]\nrole = 3", "users.anna.role is no text"),
        ("[users.anna]\nrole = 'Admin'", "'Admin', which is no role"),
        ("[users.'a b']", "'a b' cannot be a user's name"),
        ("[users.'-a']", "'-a' cannot be a user's name"),
        ("[users.anna]\n[users.anna]", "it is not TOML"),
        ("[users.anna", "it is not TOML.*end of document"),
        ("[roles.admin]", "roles.admin: admin is there already; give your role another name"),
        ("[roles.a]\nbase = 'b'", "roles.a.base is 'b': say one of viewer, operator, admin"),
        ("[roles.a]\nrole = 'viewer'", "roles.a: 'role' means nothing here"),
        ("[users.a]\nrules = {}", "users.a.rules is no list"),
        ("[users.a]\nrules = ['Orders']", "users.a.rules, number 1: write"),
        ("[users.a]\nrules = [{ topics = ['T'], actions = ['admin'] }]",
         "users.a.rules, number 1: there is no action 'admin'; actions are publish, subscribe, "),
        ("[users.a]\nrules = [{ topics = ['T'], actions = ['PUB'] }]", "no action 'PUB'"),
        ("[users.a]\nrules = [{ topics = ['T'] }]", "a rule names actions, and topics or groups"),
        ("[users.a]\nrules = [{ actions = ['look'] }]", "a rule names actions, and topics or"),
        ("[users.a]\nrules = [{ topic = ['T'], actions = ['look'] }]", "'topic' means nothing"),
        ("[users.a]\nrules = [{ topics = 'T', actions = ['look'] }]", "topics is no list of texts"),
        ("[users.a]\nrules = [{ topics = ['*T'], actions = ['look'] }]", "a star stands at"),
        ("[users.a]\nrules = [{ topics = [''], actions = ['look'] }]", "'' is no name"),
        ("[users.a]\nrules = [{ topics = ['%RETRY%g'], actions = ['look'] }]", "name the group"),
        ("[users.a]\ncertificates = 'cn:a'", "users.a: certificates is no list of texts"),
        ("[users.a]\ncertificates = ['a']", "users.a: 'a' is no name of a certificate: write cn:"),
        ("[users.a]\ncertificates = ['cn:']", "is no name of a certificate"),
        ("[users.a]\ncertificates = ['dns:A.org']", "dns:HOST in small letters"),
        ("[users.a]\n[users.b]\ncertificates = ['cn:a']", "the certificate cn:a is of a and of b"),
        ("[users.a]\nrules = [{ groups = ['g'], actions = ['publish'] }]",
         "publish is an action for topics"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(text: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        user_file.read(text.encode())


def test_a_secret_that_is_not_sealed_is_refused_and_not_repeated() -> None:
    with pytest.raises(
        InvalidValue, match=r"users.anna.secret is not sealed.*passwd anna"
    ) as error:
        user_file.read(b"[users.anna]\nsecret = 'a-plain-secret'\n")
    assert "a-plain-secret" not in str(error.value)


def test_bytes_that_are_no_text_and_too_many_of_them() -> None:
    with pytest.raises(InvalidValue, match="byte 1 is not UTF-8"):
        user_file.read(b"#\xff")
    for text in (b"a = " + b"[" * 100_000, b"a = " + b"9" * 10_000):
        with pytest.raises(InvalidValue, match="it is not TOML"):
            user_file.read(text)
    with pytest.raises(InvalidValue, match="too many"):
        user_file.read(b"#" * (user_file.FILE_BYTES_MAX + 1))


NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._@-]{0,20}\Z")
PATTERNS = st.from_regex(r"\A[A-Za-z0-9_|-]{1,10}\*?\Z")
RULES = st.builds(
    Rule,
    actions=st.lists(st.sampled_from([*ACTIONS][1:]), min_size=1, max_size=3).map(tuple),
    topics=st.lists(PATTERNS, min_size=1, max_size=3).map(tuple),
    groups=st.lists(PATTERNS, max_size=3).map(tuple),
)
SOME_RULES = st.lists(RULES, max_size=3).map(tuple)
ROLES = st.dictionaries(
    NAMES.filter(lambda name: name not in {"viewer", "operator", "admin"}),
    st.builds(RoleEntry, base=st.sampled_from(["", "viewer", "admin"]), rules=SOME_RULES),
    max_size=3,
)
USERS = st.dictionaries(
    NAMES,
    st.builds(
        UserEntry,
        role=st.sampled_from(["", "viewer", "admin"]),
        sealed=st.sampled_from(["", SEALED]),
        rules=SOME_RULES,
        certificates=st.sampled_from([None, ()]),
    ),
    max_size=5,
)


@given(st.builds(UserFile, ROLES, USERS))
def test_what_is_written_is_read_as_it_was(file: UserFile) -> None:
    assert user_file.read(user_file.written(file)) == file
