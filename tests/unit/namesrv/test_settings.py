from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.namesrv.settings import (
    LIVE_NAMES,
    SETTING_NAMES,
    NamesrvSettings,
    change_settings,
    read_settings,
    write_settings,
)
from gantrymq.wire.response_errors import NoPermission


def test_a_file_of_apaches() -> None:
    settings = read_settings(
        {
            "listenPort": "19876",
            "kvConfigPath": "/var/lib/namesrv/kvConfig.json",
            "orderMessageEnable": " TRUE ",
            "scanNotActiveBrokerInterval": "10000",
            "serverWorkerThreads": "8",
        }
    )
    assert settings == NamesrvSettings(
        listen_port=19876,
        kv_config_path="/var/lib/namesrv/kvConfig.json",
        order_in_routes=True,
        scan_interval_ms=10000,
    )


def test_written_and_read_again() -> None:
    settings = NamesrvSettings(listen_port=1, acting_masters=True, wait_for_service_s=3)
    texts = write_settings(settings)
    assert texts.keys() == SETTING_NAMES
    assert texts["supportActingMaster"] == "true"
    assert texts["waitSecondsForService"] == "3"
    assert read_settings(texts) == settings
    assert write_settings(settings, live_only=True).keys() == set(LIVE_NAMES)


def test_every_problem_is_named() -> None:
    with pytest.raises(InvalidValue) as caught:
        read_settings(
            {
                "listenPort": "65536",
                "orderMessageEnable": "yes",
                "waitSecondsForService": "1.5",
                "kvConfigPath": "",
            }
        )
    assert str(caught.value) == (
        "listenPort must be a whole number from 0 to 65535, not '65536'; "
        "orderMessageEnable must be true or false, not 'yes'; "
        "waitSecondsForService must be a whole number from 0 to 3600, not '1.5'; "
        "kvConfigPath must be a text that is not empty, not ''"
    )


@pytest.mark.parametrize(
    "name",
    [
        "kvConfigPath",
        "configStorePath",
        "rocketmqHome",
        "listenPort",
        "bindAddress",
        "insecure",
        "configBlackList",
        "productEnvName",
        "tlsKeyPath",
        "anything",
    ],
)
def test_a_request_sets_no_path_address_or_unknown_name(name: str) -> None:
    with pytest.raises(NoPermission, match=f"'{name}' cannot be set by a request"):
        change_settings(NamesrvSettings(), {"orderMessageEnable": "true", name: "1"})


def test_a_request_sets_all_or_nothing() -> None:
    with pytest.raises(InvalidValue, match="scanNotActiveBrokerInterval must be"):
        change_settings(
            NamesrvSettings(), {"orderMessageEnable": "true", "scanNotActiveBrokerInterval": "1"}
        )
    changed = change_settings(NamesrvSettings(listen_port=5), {"orderMessageEnable": "true"})
    assert changed == NamesrvSettings(listen_port=5, order_in_routes=True)
