from tests.servers import api_server

__all__ = ["api_server"]
