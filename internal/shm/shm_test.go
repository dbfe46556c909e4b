package shm

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cairndb/cairn/vfs"
)

// TestWorkedExample: docs/format/lock.md.
func TestWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/format/lock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), "```hex")
	want := ""
	for _, m := range regexp.MustCompile(`(?m)^01(?:c|d|e)[08]: ([0-9a-f]{16}) `).FindAllStringSubmatch(example, -1) {
		want += m[1]
	}
	memory := make([]byte, vfs.SharedBytes)
	for i := range 8 {
		memory[i] = byte(8 - i)
	}
	var w Writer
	w.Edited()
	w.Edited()
	w.Begin(memory, 0)
	w.Edited()
	w.Show(42, 7<<32+248)
	if got := hex.EncodeToString(memory[:5*8]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r := NewReader(memory)
	if seen, _ := r.Look(); seen != (Seen{Turn: 0x0102030405060708, Seq: 42, End: 7<<32 + 248, Edits: 3, Shown: true}) {
		t.Errorf("%+v", seen)
	}
	if turn := uint64(0x0102030405060708); r.News(turn, 42) || !r.News(turn, 41) || !r.News(turn+1, 42) {
		t.Error("News")
	}
}

// TestNothingShown: before Begin nothing is stored, and after End nothing more.
func TestNothingShown(t *testing.T) {
	memory := make([]byte, vfs.SharedBytes)
	var w Writer
	w.Show(1, 2)
	w.Edited()
	if seen, ok := NewReader(memory).Look(); w.Showing() || seen != (Seen{}) || !ok {
		t.Error("something is shown")
	}
	w.Begin(memory, 5)
	w.End()
	w.Show(6, 7)
	w.Edited()
	if seen, _ := NewReader(memory).Look(); seen != (Seen{Seq: 5, Edits: 1, Shown: true}) {
		t.Errorf("%+v", seen)
	}
}
