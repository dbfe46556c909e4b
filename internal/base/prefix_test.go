package base

import "testing"

func TestHeadBehind(t *testing.T) {
	key := []byte("0123456789abcdefghij")
	for length := range len(key) + 1 {
		for n := range length + 1 {
			if got, want := HeadBehind(key[:length], n), Head(key[n:length]); got != want {
				t.Errorf("behind %d of %d bytes: %x, want %x", n, length, got, want)
			}
		}
	}
}
