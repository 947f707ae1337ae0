"""What is measured, a file each; every file offers ``tasks(bench)``."""
