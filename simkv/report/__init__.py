"""Reports: result folders as one page that a manager reads and an engineer trusts."""
