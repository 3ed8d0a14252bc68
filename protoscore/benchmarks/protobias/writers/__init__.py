"""Components that write triplets from a taxonomy. One file each; the file name is the component's name."""
