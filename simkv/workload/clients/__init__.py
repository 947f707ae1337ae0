"""Workloads of many clients, each with its own rate, burstiness and lengths over time, as ServeGen records them.

``folder.py`` finds the files of each client, ``windows.py`` and ``dataset.py`` read them, and
``source.py`` draws requests.
"""

from simkv.workload.clients.source import ClientsSource, build_clients

__all__ = ["ClientsSource", "build_clients"]
