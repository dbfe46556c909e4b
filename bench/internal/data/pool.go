package data

import (
	"math/rand/v2"
	"strconv"
)

// PoolBytes is the size of the text that values are windows into.
const PoolBytes = 8 << 20

const (
	vocabularyWords = 4000
	zipfExponent    = 1.05
)

// text makes a pool line by line.
type text struct {
	rng   *rand.Rand
	words []string
	zipf  *rand.Zipf
	clock int64 // milliseconds since the first record
	out   []byte
}

// makePool writes JSON lines until the pool is full.
func makePool(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	t := &text{
		rng:   rng,
		words: vocabulary(rng, vocabularyWords),
		zipf:  rand.NewZipf(rng, zipfExponent, 2.7, vocabularyWords-1),
		out:   make([]byte, 0, PoolBytes+4096),
	}
	for len(t.out) < PoolBytes {
		t.record()
	}
	return t.out[:PoolBytes]
}

// vocabulary makes n different words of two to four syllables.
func vocabulary(rng *rand.Rand, n int) []string {
	const heads, vowels, tails = "bcdfghjklmnprstvwz", "aeiou", "lmnrst"
	seen := make(map[string]bool, n)
	words := make([]string, 0, n)
	for len(words) < n {
		var w []byte
		for range 1 + rng.IntN(3) {
			w = append(w, heads[rng.IntN(len(heads))], vowels[rng.IntN(len(vowels))])
			if rng.IntN(2) == 0 {
				w = append(w, tails[rng.IntN(len(tails))])
			}
		}
		if word := string(w); !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

var (
	levels   = []string{"info", "info", "info", "info", "debug", "warn", "error"}
	services = []string{"billing", "checkout", "gateway", "ledger", "mailer", "search", "session", "stock"}
)

// record appends one line of log.
func (t *text) record() {
	t.clock += int64(t.rng.IntN(900))
	t.raw(`{"ts":"2026-03-`).padded(1+t.clock/86400000%28, 2)
	t.raw("T").padded(t.clock/3600000%24, 2).raw(":").padded(t.clock/60000%60, 2)
	t.raw(":").padded(t.clock/1000%60, 2).raw(".").padded(t.clock%1000, 3)
	t.raw(`Z","level":"`).raw(levels[t.rng.IntN(len(levels))])
	t.raw(`","svc":"`).raw(services[t.rng.IntN(len(services))])
	t.raw(`","trace":"`).hex(32)
	t.raw(`","user":`).number(1_000_000)
	t.raw(`,"addr":"10.`).number(8).raw(".").number(256).raw(".").number(256)
	t.raw(`","amount":`).number(5000).raw(".").padded(int64(t.rng.IntN(100)), 2)
	t.raw(`,"msg":"`).sentence(4 + t.rng.IntN(14))
	t.raw("\"}\n")
}

func (t *text) raw(s string) *text {
	t.out = append(t.out, s...)
	return t
}

func (t *text) padded(v int64, digits int) *text {
	for n := len(strconv.FormatInt(v, 10)); n < digits; n++ {
		t.out = append(t.out, '0')
	}
	t.out = strconv.AppendInt(t.out, v, 10)
	return t
}

func (t *text) number(below int) *text {
	t.out = strconv.AppendInt(t.out, int64(t.rng.IntN(below)), 10)
	return t
}

func (t *text) hex(digits int) *text {
	for range digits {
		t.out = append(t.out, "0123456789abcdef"[t.rng.IntN(16)])
	}
	return t
}

func (t *text) sentence(words int) *text {
	for i := range words {
		if i > 0 {
			t.out = append(t.out, ' ')
		}
		t.out = append(t.out, t.words[t.zipf.Uint64()]...)
	}
	return t
}
