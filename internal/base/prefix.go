package base

// CommonPrefix returns how many first bytes a and b have in common.
func CommonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
