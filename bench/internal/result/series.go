package result

// Second is one second of a run over time.
type Second struct {
	Ops     int     `json:"ops"`    // that ended in it
	MaxNano float64 `json:"max_ns"` // the slowest of them
}
