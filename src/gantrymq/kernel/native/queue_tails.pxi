# Tails of consume queues, and the runs that continue them.

cdef class QueueTail:
    """Where a queue ends, and what waits there; see `tails.QueueTail`."""

    cdef public int64_t end
    cdef public int64_t log_end
    cdef public bint is_open
    cdef readonly bytearray data

    def __init__(self):
        self.data = bytearray()

    def copy(self):
        """Return another one that holds the same."""
        cdef QueueTail other = QueueTail()
        other.end = self.end
        other.log_end = self.log_end
        other.data += self.data
        return other


cdef extern from "Python.h":
    ctypedef struct PyByteArrayObject:
        Py_ssize_t ob_alloc


cdef int resize_tail(bytearray data, Py_ssize_t size) except -1:
    """Resize, with room for half as much again: 20 bytes at a time it would be moved each time."""
    if size > (<PyByteArrayObject*>data).ob_alloc:
        PyByteArray_Resize(data, size + size // 2)
    return PyByteArray_Resize(data, size)


cdef bint extend(QueueTail tail, tuple run) except -1:
    """Add a run if it continues the tail; otherwise close that, and tell so."""
    cdef bytes units = <bytes>run[3]
    cdef Py_ssize_t size = PyBytes_GET_SIZE(units)
    cdef Py_ssize_t held = PyByteArray_GET_SIZE(tail.data)
    cdef int beyond = 0
    cdef int64_t log_end = PyLong_AsLongLongAndOverflow(run[4], &beyond)
    cdef int64_t first = run[2]
    if (not tail.is_open or size < 20 or tail.end % 20 or first != tail.end // 20 or beyond
            or <int64_t>load64(<const uint8_t*>PyBytes_AS_STRING(units)) < tail.log_end):
        tail.is_open = False
        return False
    resize_tail(tail.data, held + size)
    memcpy(PyByteArray_AS_STRING(tail.data) + held, PyBytes_AS_STRING(units), <size_t>size)
    tail.end += size
    tail.log_end = log_end
    return True


def extend_queues(dict tails, list runs):
    """Add runs to the open tails that they continue; return the others."""
    cdef list others = []
    cdef object tail
    for run in runs:
        tail = tails.get((<tuple>run)[:2])
        if tail is None or not extend(<QueueTail?>tail, <tuple>run):
            others.append(run)
    return others
