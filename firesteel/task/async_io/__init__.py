"""What the async wait operator is made of: an event loop, the requests in it, and their queue."""
