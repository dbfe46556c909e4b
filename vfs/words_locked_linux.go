//go:build mips || mipsle || (arm && !arm.7)

package vfs

// sharesWords: Go takes a lock of the process's own for words of 64 bit here.
const sharesWords = false
