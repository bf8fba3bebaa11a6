"""The ledger of half messages: its window, its moves, and how far it says that all is done."""

from __future__ import annotations

from gantrymq.broker.transactions_ledger import (
    COMMITTED,
    DONE,
    MOVES_MAX,
    OPEN,
    ROLLED_BACK,
    TAKEN,
    Ledger,
)


def ledger(half_offset: int = 0, op_offset: int = 0, window: int = 100) -> Ledger:
    """Return a ledger that begins at some offsets."""
    made = Ledger(window)
    made.restart(half_offset, op_offset)
    return made


def test_everything_is_open_until_an_op_record_says_otherwise() -> None:
    """Before the beginning all is done; behind the last known offset all is open."""
    book = ledger(10)
    book.take_op(0, [12])
    assert [book.state(offset) for offset in (9, 10, 12, 99)] == [DONE, OPEN, DONE, OPEN]


def test_progress_stops_at_the_first_that_is_open_or_under_way() -> None:
    """Both offsets: no op record is let go that is about something behind the half offset."""
    book = ledger()
    for op, half in enumerate((0, 3, 1, 2)):
        book.take_op(op, [half])
    assert book.trim() == (4, 4)
    book.take_op(4, [6])
    book.mark(4, TAKEN)
    book.take_op(5, [5])
    assert book.trim() == (4, 4)
    book.mark(4, OPEN)
    assert book.trim() == (4, 4)
    book.mark(4, COMMITTED)
    assert book.trim() == (7, 6)


def test_what_is_done_stays_so() -> None:
    """A second record about it, or a commit that failed late, opens nothing."""
    book = ledger()
    book.mark(0, ROLLED_BACK)
    for state in (OPEN, TAKEN, DONE, COMMITTED):
        book.mark(0, state)
        assert book.state(0) == ROLLED_BACK


def test_record_about_several_is_let_go_with_the_last() -> None:
    """5.x writes lists; one of them may be open for long."""
    book = ledger()
    book.take_op(0, [0, 2])
    assert book.trim() == (1, 0)
    book.take_op(1, [1])
    assert book.trim() == (3, 2)


def test_records_about_nothing_hold_up_nothing() -> None:
    """Of another tag, or about what is long done."""
    book = ledger(5)
    book.take_op(0, [])
    book.take_op(1, [3])
    assert book.trim() == (5, 2)


def test_open_run() -> None:
    """The next offsets in a row that are worth reading together."""
    book = ledger(10)
    for op, half in enumerate((10, 13, 16)):
        book.take_op(op, [half])
    assert book.open_run(0, 100, 32) == (11, 2)
    assert book.open_run(13, 100, 32) == (14, 2)
    assert book.open_run(16, 100, 32) == (17, 32)
    assert book.open_run(16, 20, 32) == (17, 3)
    assert book.open_run(11, 100, 1) == (11, 1)
    assert book.open_run(20, 20, 32)[1] == 0


def test_window_has_an_end() -> None:
    """What is behind it is not remembered, but where to read of it again is."""
    book = ledger(window=4)
    book.take_op(0, [0])
    book.take_op(1, [7])
    book.take_op(2, [1])
    book.take_op(3, [2])
    assert not book.has_room(4)
    assert (book.state(7), book.reread) == (OPEN, 1)
    assert book.trim() == (3, 1)
    book.read_ops_again()
    assert (book.next_op, book.is_loaded) == (1, False)
    book.take_op(1, [7])
    assert book.reread == 1
    book.take_op(2, [1])
    book.take_op(3, [2])
    book.take_op(4, [3])
    assert book.trim() == (4, 1)
    book.read_ops_again()
    for op, half in ((1, 7), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6)):
        book.take_op(op, [half])
    assert book.trim() == (8, 8)


def test_records_further_on_are_read_in_their_turn() -> None:
    """One that this process wrote while older ones are still unread counts at once."""
    book = ledger()
    book.take_op(5, [0])
    assert (book.state(0), book.next_op) == (DONE, 0)
    assert book.trim() == (1, 0)


def test_gone_messages_and_records_are_passed_over() -> None:
    """Their files were deleted."""
    book = ledger()
    book.take_op(0, [4])
    book.pass_over(0, 3)
    assert (book.base, book.state(3), book.state(4)) == (3, OPEN, DONE)
    book.pass_over(3, 4)
    assert book.trim() == (5, 1)
    book.pass_over(7, 9)
    assert [book.state(offset) for offset in (6, 7, 8, 9)] == [OPEN, DONE, DONE, OPEN]
    book.pass_over_ops(10)
    assert book.next_op == 10
    book.pass_over_ops(3)
    assert book.next_op == 10


def test_moves_lead_to_the_last_copy() -> None:
    """However often it was stored again; only forwards, so that no circle can be."""
    book = ledger()
    book.move(1, 5)
    book.move(5, 9)
    assert book.current(1) == 9
    book.move(9, 1)
    book.move(3, 3)
    assert (book.current(1), book.current(3)) == (9, 3)


def test_moves_are_bounded() -> None:
    """The oldest is forgotten: an answer about it is refused, and its producer asked again."""
    book = ledger()
    for offset in range(MOVES_MAX + 1):
        book.move(offset, offset + 10**6)
    assert book.current(0) == 0
    assert book.current(1) == 1 + 10**6
