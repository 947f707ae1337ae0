"""What ``import simkv`` offers to notebooks and programs: scenarios, runs, sweeps and plans as typed results."""
