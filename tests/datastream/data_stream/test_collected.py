import threading

from firesteel.datastream.data_stream.collected import CollectBuffer


def test_the_job_waits_for_a_slow_reader():
    buffer = CollectBuffer(capacity=2)
    buffer.add([1, 2])
    added = threading.Event()

    def job():
        buffer.add([3])
        added.set()
        buffer.end()

    thread = threading.Thread(target=job)
    thread.start()
    assert not added.is_set()
    assert list(buffer) == [1, 2, 3]
    thread.join(10)
    assert added.is_set()


def test_close_lets_a_waiting_job_go():
    buffer = CollectBuffer(capacity=1)
    buffer.add([1])
    thread = threading.Thread(target=buffer.add, args=([2],))
    thread.start()
    buffer.close()
    thread.join(10)
    assert not thread.is_alive()
    assert list(buffer) == []


def test_a_job_that_is_being_canceled_waits_no_longer():
    buffer = CollectBuffer(capacity=1)
    buffer.add([1])
    thread = threading.Thread(target=buffer.add, args=([2],))
    thread.start()
    buffer.release()
    thread.join(10)
    assert not thread.is_alive()
    buffer.end()
    assert list(buffer) == [1, 2]


def test_an_epoch_larger_than_the_capacity_is_taken_whole():
    buffer = CollectBuffer(capacity=1)
    buffer.add([1, 2, 3])
    buffer.end()
    assert list(buffer) == [1, 2, 3]


def test_no_error_after_close():
    buffer = CollectBuffer()
    buffer.close()
    buffer.end(RuntimeError("canceled"))
    assert list(buffer) == []
