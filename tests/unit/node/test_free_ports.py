"""Free ports: nobody listens at them, and none is given twice."""

from __future__ import annotations

import socket

import pytest

from gantrymq.errors import GantryError
from gantrymq.node import free_ports
from gantrymq.node.free_ports import FreePorts


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> range:
    """Eight ports in a row that are free, and the only ones that are looked at."""
    first = FreePorts().find([-2, -1, *range(1, 9)])
    ports = range(first, first + 8)
    monkeypatch.setattr(free_ports, "PORTS", ports)
    return ports


def test_a_port_is_given_once_and_then_there_are_none(eight: range) -> None:
    ports = FreePorts()
    assert sorted(ports.find() for _ in eight) == list(eight)
    with pytest.raises(GantryError, match=f"no 1 free ports .* between {eight[0]} and {eight[-1]}"):
        ports.find()


def test_a_port_that_somebody_listens_at_is_not_given(eight: range) -> None:
    with socket.create_server(("127.0.0.1", eight[3])):
        ports = FreePorts()
        assert sorted(ports.find() for _ in range(7)) == [one for one in eight if one != eight[3]]


def test_a_broker_has_room_for_all_its_ports(eight: range) -> None:
    """It takes the port two below, too, and the one above."""
    with socket.create_server(("127.0.0.1", eight[4])):
        found = {FreePorts().find_for_broker() for _ in range(100)}
    assert found == {eight[0], eight[1], eight[2], eight[5], eight[7]}


def test_an_address_of_another_machine_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match="assign"):
        FreePorts("192.0.2.1").find()
