"""Active offload: running sequences keep part of their KV below VRAM and read it back in every step."""
