from __future__ import annotations

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.wire.sysflag import (
    Compression,
    TransactionType,
    compression,
    transaction_type,
    with_compression,
    with_host_bits,
    with_transaction_type,
)


@pytest.mark.parametrize(
    ("sys_flag", "kind"),
    [
        (0, None),
        (0x700, None),
        (1, Compression.ZLIB),
        (769, Compression.ZLIB),
        (257, Compression.LZ4),
        (513, Compression.ZSTD),
    ],
)
def test_compression(sys_flag: int, kind: Compression | None) -> None:
    assert compression(sys_flag) is kind


@pytest.mark.parametrize("kind", range(4, 8))
def test_unknown_compression(kind: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        compression(kind << 8 | 1)
    assert caught.value.field == "sysFlag"


def test_other_bits_stay() -> None:
    everything = -1
    assert compression(with_compression(everything, Compression.LZ4)) is Compression.LZ4
    assert with_compression(everything, None) == ~0x701
    assert with_compression(0, Compression.ZLIB) == 769
    assert with_transaction_type(everything, TransactionType.COMMIT) == ~4
    assert with_transaction_type(0x1001, TransactionType.PREPARED) == 0x1005
    assert with_host_bits(0x7FF, 8, 8) == 0x7CF
    assert with_host_bits(0x300, 20, 8) == 0x310
    assert with_host_bits(0x310, 8, 20) == 0x320


@pytest.mark.parametrize("kind", TransactionType)
def test_transaction_type(kind: TransactionType) -> None:
    assert transaction_type(with_transaction_type(0x303, kind)) is kind
