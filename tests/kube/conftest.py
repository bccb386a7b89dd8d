from tests.servers import api_server, plane

__all__ = ["api_server", "plane"]
