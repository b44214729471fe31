"""HTTP as a door to jobs: what a request asks for, who asks, and how an outcome is answered."""
