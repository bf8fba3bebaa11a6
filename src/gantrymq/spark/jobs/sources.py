"""Where messages come from and go to, as options that jobs share; the format's own names behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.job import Options
from gantrymq.spark.options import read_source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gantrymq.spark.jobs.job import Context
    from gantrymq.spark.options import SourceOptions


class ServerOptions(Options, kw_only=True, frozen=True):
    """How name servers are reached."""

    name_server: Annotated[str | None, Meta(description="HOST:PORT of the name server")] = None
    access_key: Annotated[str | None, Meta(description="access key")] = None
    secret_key: Annotated[str | None, Meta(description="secret key")] = None
    namespace: Annotated[str | None, Meta(description="namespace of topics and groups")] = None
    tls: Annotated[bool, Meta(description="speak TLS")] = False
    tls_ca_file: Annotated[str | None, Meta(description="certificates to trust")] = None

    def connection(self) -> dict[str, str]:
        """Return the options of the format that reach servers."""
        named = {
            "nameServer": self.name_server,
            "accessKey": self.access_key,
            "secretKey": self.secret_key,
            "namespace": self.namespace,
            "tlsCaFile": self.tls_ca_file,
            "tls": "true" if self.tls else None,
        }
        return {name: value for name, value in named.items() if value}


class ReadOptions(ServerOptions, kw_only=True, frozen=True):
    """Which messages are read."""

    mode: Annotated[
        Literal["broker", "store"] | None,
        Meta(description="ask brokers, or read store directories; follows from --path if not said"),
    ] = None
    path: Annotated[
        tuple[str, ...], Meta(description="store directory, several as BROKER=DIR each")
    ] = ()
    broker_conf: Annotated[str | None, Meta(description="broker.conf of the store")] = None
    topic: Annotated[tuple[str, ...], Meta(description="topic; may be given more than once")] = ()
    topic_pattern: Annotated[str | None, Meta(description="topics by regular expression")] = None
    starting_offsets: Annotated[
        str | None, Meta(description="earliest, latest, timestamp:TIME, group:NAME or JSON")
    ] = None
    ending_offsets: Annotated[str | None, Meta(description="the same, for the end")] = None
    fail_on_data_loss: Annotated[
        Literal["fail", "warn", "skip"],
        Meta(description="when messages to be read are gone"),
    ] = "fail"

    def read_dict(self, **more: str | None) -> dict[str, str]:
        """Return the options of the format `rocketmq`; `more` go on top."""
        named = {
            "mode": self.mode or ("store" if self.path and not self.name_server else "broker"),
            "path": ",".join(self.path),
            "brokerConf": self.broker_conf,
            "topics": ",".join(self.topic),
            "topicPattern": self.topic_pattern,
            "startingOffsets": self.starting_offsets,
            "endingOffsets": self.ending_offsets,
            "failOnDataLoss": self.fail_on_data_loss,
            **more,
        }
        return self.connection() | {name: value for name, value in named.items() if value}

    @property
    def has_source(self) -> bool:
        """Tell whether a source was named at all."""
        return bool(self.path or self.name_server)

    def parsed(self, **more: str | None) -> SourceOptions:
        """Return the options as the format reads them.

        Raises:
            InvalidValue: they cannot be.
        """
        return read_source_options(self.read_dict(**more))

    def frame(self, context: Context, schema: str | None = None, **more: str | None) -> DataFrame:
        """Return the messages as a DataFrame.

        Raises:
            InvalidValue: the options cannot be.
        """
        self.parsed(**more)  # says on the driver, in one line, what Spark would say in fifty
        reader = context.spark.read.format("rocketmq").options(**self.read_dict(**more))
        return (reader.schema(schema) if schema else reader).load()


def needs_source(options: ReadOptions) -> None:
    """See that a source was named.

    Raises:
        InvalidValue: none was.
    """
    if not options.has_source:
        raise InvalidValue("no source: give --name-server HOST:PORT, or --path STORE")
