"""Components that score one picture against its own description, from 1 to 10 (paper, section 4.2). One file each."""
