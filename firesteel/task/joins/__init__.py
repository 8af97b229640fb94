"""What joins keep of their inputs."""
