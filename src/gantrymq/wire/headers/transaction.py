"""Transactions: ending them, and asking how they ended."""

from gantrymq.wire.fields import Header, Int32, Int64


class EndTransactionRequest(Header, frozen=True, kw_only=True):
    """END_TRANSACTION."""

    producer_group: str
    tran_state_table_offset: Int64
    """Offset in the half queue."""
    commit_log_offset: Int64
    commit_or_rollback: Int32
    """8 commit, 12 roll back, 0 not known yet."""
    msg_id: str
    """The unique key."""
    from_transaction_check: bool | None = None
    transaction_id: str | None = None
    topic: str | None = None


class CheckTransactionStateRequest(Header, frozen=True, kw_only=True):
    """CHECK_TRANSACTION_STATE."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None


class ResumeCheckHalfMessageRequest(Header, frozen=True, kw_only=True):
    """RESUME_CHECK_HALF_MESSAGE."""

    msg_id: str | None = None
    topic: str | None = None
