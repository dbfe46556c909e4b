//go:build !(mips || mipsle || (arm && !arm.7))

package vfs

// sharesWords: what one process stores as a word of 64 bit, others see as a whole.
const sharesWords = true
