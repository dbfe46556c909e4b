//go:build !cgo || !(native || native_tokyocabinet)

package engine

func init() {
	registerAbsent(tokyoHashInfo, whyNoTokyoCabinet, "native_tokyocabinet")
	registerAbsent(tokyoTreeInfo, whyNoTokyoCabinet, "native_tokyocabinet")
}
