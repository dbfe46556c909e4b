package prefetch

// Lines brings the cache lines of b on their way. On processors other than amd64 and arm64 it does nothing.
func Lines(b []byte) {
	if len(b) > 0 {
		lines(&b[0], len(b))
	}
}

// Most is how much of one value is to be brought on its way, in bytes: the processor sees by then what it is
// about.
const Most = 4 << 10
