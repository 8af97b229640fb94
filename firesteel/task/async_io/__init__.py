"""Parts of the async wait operator: the event loop, its requests, and the queue of results."""
