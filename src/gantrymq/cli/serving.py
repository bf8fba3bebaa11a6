"""What `gantrymq server`, `namesrv` and `broker` do."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS
from gantrymq.cli.dashboard import Beside
from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError
from gantrymq.node import config
from gantrymq.node.access import opened_access
from gantrymq.node.all_in_one import AllInOne
from gantrymq.node.broker_node import BrokerNode
from gantrymq.node.certificate import offered_tls
from gantrymq.node.exposure import reach_line, refuse_exposed, refuse_unreachable
from gantrymq.node.failover_node import FailoverNode
from gantrymq.node.lifecycle import run_node
from gantrymq.node.logs import configure_logs
from gantrymq.node.namesrv_node import NamesrvNode

if TYPE_CHECKING:
    import argparse
    import ssl
    from collections.abc import Callable, Mapping

    from gantrymq.node.observed import Observed

NAME_SERVERS_VARIABLE = "NAMESRV_ADDR"
DASHBOARD_STOP_S_MAX = 5.0

logger = logging.getLogger(__name__)


def server(chosen: argparse.Namespace) -> int:
    """Run name server and broker in one process."""
    return _told(chosen, lambda properties: _server(chosen, properties))


def _server(chosen: argparse.Namespace, properties: dict[str, str]) -> int:
    properties.setdefault("brokerName", "gantrymq")
    properties.setdefault("storePathRootDir", str(chosen.data.absolute() / "store"))
    if chosen.port is not None:
        properties["listenPort"] = str(chosen.port)
    if chosen.bind is not None:
        properties["bindAddress"] = chosen.bind
    is_chosen = "metricsPort" in config.with_apache_metrics(properties)
    if not is_chosen:
        properties["metricsPort"] = str(config.APACHE_METRICS_PORT)
    found = config.read_broker_config(properties, chosen.data)
    told = _checked_reach(found, properties)
    namesrv = config.read_namesrv_settings(
        {
            "listenPort": str(chosen.namesrv_port),
            "kvConfigPath": str(chosen.data / "namesrv" / "kvConfig.json"),
            "configStorePath": str(chosen.data / "namesrv" / "namesrv.properties"),
            "bindAddress": found.broker.bind_address,
            "insecure": str(found.broker.insecure),
        }
    )
    opened_access(found.broker, found.store, SystemClock())  # what cannot be leaves nothing behind
    tls = offered_tls(found.tls, properties, chosen.data / "tls")
    node = AllInOne(namesrv, found.broker, found.store, tls=tls, client_tls=found.client_tls)
    observed = _observed_server(node, found, may_move=not is_chosen)

    def started() -> None:
        address = node.namesrv.address
        _say(
            f"{PROGRAM} is ready: name server {address}, broker {node.broker.address}, "
            f"data in {chosen.data}\n"
            "try it:\n"
            f"  export NAMESRV_ADDR={address}\n"
            f"  {PROGRAM} message send TopicTest hello\n"
            f"  {PROGRAM} message search TopicTest"
            f"{told}{_where(observed)}"
        )

    runs = observed or node
    if not chosen.dashboard_port:
        return run_node(runs, started)
    own = found.client_tls
    # It calls this process by an address, as the broker does its name server.
    context = None if own is None else replace(own, checks_name=False).context()
    return run_node(*_with_dashboard(chosen, node, runs, started, context))


class _Both:
    """A server with a dashboard beside it."""

    def __init__(self, node: AllInOne | Observed) -> None:
        self._node = node
        self.dashboard: Beside | None = None

    async def start(self) -> object:
        return await self._node.start()

    async def stop(self) -> bool:
        try:
            await self._stop_dashboard()
        finally:  # what the broker holds has to reach the disk, whatever happens here
            clean = await self._node.stop()
        return clean

    async def _stop_dashboard(self) -> None:
        if self.dashboard is None:
            return
        task = asyncio.ensure_future(self.dashboard.stop())
        done, _ = await asyncio.wait({task}, timeout=DASHBOARD_STOP_S_MAX)
        if not done:
            task.cancel()
            logger.warning("the dashboard did not stop within %.0f s", DASHBOARD_STOP_S_MAX)
        elif not task.cancelled() and task.exception() is not None:
            logger.error("the dashboard did not stop in order", exc_info=task.exception())


def _with_dashboard(
    chosen: argparse.Namespace,
    node: AllInOne,
    runs: AllInOne | Observed,
    started: Callable[[], None],
    context: ssl.SSLContext | None,
) -> tuple[_Both, Callable[[], None]]:
    """Return a server that begins with its dashboard once it is ready."""
    from gantrymq.client.settings import Credentials  # noqa: PLC0415
    from gantrymq.dashboard.settings import DashboardSettings  # noqa: PLC0415

    both = _Both(runs)

    def begin() -> None:
        started()
        settings = DashboardSettings(
            namesrv=node.namesrv.address,
            data=chosen.data / "dashboard",
            bind=chosen.dashboard_bind,
            port=chosen.dashboard_port,
            ssl=context,
            credentials=None
            if node.account is None
            else Credentials(node.account.access_key, node.account.secret_key),
        )
        both.dashboard = Beside(settings, _say)
        both.dashboard.begin()

    return both, begin


def namesrv(chosen: argparse.Namespace) -> int:
    """Run a name server."""
    return _told(chosen, lambda properties: _namesrv(chosen, properties))


def _namesrv(chosen: argparse.Namespace, properties: Mapping[str, str]) -> int:
    settings = config.read_namesrv_settings(properties)
    if chosen.print:
        sys.stdout.write(config.shown_text(config.namesrv_properties(settings)))
        return SUCCESS
    refuse_exposed(settings)
    is_default = config.is_bound_by_default(properties)
    told = _line(reach_line(settings, is_bound_by_default=is_default))
    beside = Path(settings.kv_config_path).expanduser().parent / "tls"
    node = NamesrvNode(settings, tls=offered_tls(config.read_tls(properties), properties, beside))
    observed = _observed_namesrv(node, settings.metrics_bind_address, settings.metrics_port)

    def started() -> None:
        _say(f"the name server is ready: port {node.port}{told}{_where(observed)}")

    return run_node(observed or node, started)


def broker(chosen: argparse.Namespace) -> int:
    """Run a broker, or several."""
    return _told(chosen, lambda properties: _broker(chosen, properties))


def _broker(chosen: argparse.Namespace, properties: dict[str, str]) -> int:
    if chosen.namesrv is not None:
        properties["namesrvAddr"] = chosen.namesrv
    properties.setdefault("namesrvAddr", os.environ.get(NAME_SERVERS_VARIABLE, ""))
    found = config.read_broker_config(properties, Path.home())
    if chosen.print or chosen.print_changed:
        shown = found.properties()
        if not chosen.print:
            usual = config.read_broker_config({}, Path.home()).properties()
            shown = {name: text for name, text in shown.items() if text != usual.get(name)}
        sys.stdout.write(config.shown_text(shown))
        return SUCCESS
    told = _checked_reach(found, properties)
    opened_access(found.broker, found.store, SystemClock())
    if chosen.shards > 1:
        from gantrymq.cli.shards import run_shards  # noqa: PLC0415  (needed by few)

        return run_shards(found, properties, chosen.shards, _say, chosen.log)
    tls = offered_tls(found.tls, properties, found.store.paths.root / "tls")
    kind = FailoverNode if found.broker.etcd else BrokerNode
    node = kind(found.broker, found.store, tls=tls, client_tls=found.client_tls)
    observed = _observed_broker(node, found)

    def started() -> None:
        _say(
            f"broker {node.settings.name} is ready: {node.address}, name servers "
            f"{', '.join(node.name_servers) or 'none (give them with -n)'}{told}{_where(observed)}"
        )

    return run_node(observed or node, started)


def _observed_server(
    node: AllInOne, found: config.BrokerConfig, *, may_move: bool
) -> Observed | None:
    """Return the server with the port of metrics beside it; None if that is off."""
    settings = found.broker
    if settings.metrics_port < 0:
        return None
    # What makes metrics is loaded for those who want some.
    from gantrymq.node.observed import Listening, observed_server  # noqa: PLC0415

    at = Listening(settings.metrics_bind_address, settings.metrics_port, may_move)
    return observed_server(node, at, settings.metrics_series_max)


def _observed_broker(
    node: BrokerNode | FailoverNode, found: config.BrokerConfig
) -> Observed | None:
    """Return the same of a broker."""
    settings = found.broker
    if settings.metrics_port < 0:
        return None
    from gantrymq.node.observed import Listening, observed_broker  # noqa: PLC0415

    at = Listening(settings.metrics_bind_address, settings.metrics_port)
    return observed_broker(node, at, settings.metrics_series_max)


def _observed_namesrv(node: NamesrvNode, address: str, port: int) -> Observed | None:
    """Return the same of a name server."""
    if port < 0:
        return None
    from gantrymq.node.observed import Listening, observed_namesrv  # noqa: PLC0415

    return observed_namesrv(node, Listening(address, port))


def _checked_reach(found: config.BrokerConfig, properties: Mapping[str, str]) -> str:
    """Return a line about who reaches a broker, or nothing.

    Raises:
        InvalidSettings: whoever may not, or those whom it tells where it is do not.
    """
    is_default = config.is_bound_by_default(properties)
    refuse_exposed(found.broker)
    refuse_unreachable(found.broker, is_bound_by_default=is_default)
    return _line(reach_line(found.broker, is_bound_by_default=is_default))


def _line(text: str) -> str:
    return f"\n{text}" if text else ""


def _where(observed: Observed | None) -> str:
    return "" if observed is None else f"\nmetrics: {observed.url}"


def _told(chosen: argparse.Namespace, work: Callable[[dict[str, str]], int]) -> int:
    """Read the file and do the work; say on one line what went wrong."""
    configure_logs(chosen.log, chosen.log_format or "text")
    try:
        properties = config.read_file(chosen.config) if chosen.config is not None else {}
        if chosen.config is not None and properties.get("aclEnable", "").strip().lower() == "true":
            properties.setdefault("aclPath", str(chosen.config.absolute().parent))
        if chosen.log_format is not None:
            properties["logFormat"] = chosen.log_format
        elif properties.get("logFormat", "").strip() == "json":
            configure_logs(chosen.log, "json")
        if chosen.metrics_port is not None:
            properties["metricsPort"] = str(chosen.metrics_port)
        if chosen.insecure:
            properties["insecure"] = "true"
        return work(properties)
    except GantryError as error:
        problems = "; ".join(str(error).splitlines())
        sys.stderr.write(f"{PROGRAM}: {problems}\n")
    except OSError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
    return FAILED


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
