package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/dustin/go-humanize"
)

// recoveryDocument is the JSON of what had to be done because the store had not
// been closed. The position of what was dropped is left out where there is none.
type recoveryDocument struct {
	Needed         bool    `json:"needed"`
	DroppedBytes   int64   `json:"dropped_bytes"`
	DroppedSegment uint64  `json:"dropped_segment,omitempty"`
	DroppedOffset  uint64  `json:"dropped_offset,omitempty"`
	Seconds        float64 `json:"seconds"`
}

func newRecoveryDocument(s cairn.RecoveryStats) recoveryDocument {
	// An earlier recovery, whose process then did not close the store, is reported
	// though there was nothing left to replay.
	r := recoveryDocument{Needed: s.Duration > 0 || s.DroppedBytes > 0, DroppedBytes: s.DroppedBytes, Seconds: s.Duration.Seconds()}
	if s.DroppedBytes > 0 {
		r.DroppedSegment, r.DroppedOffset = s.DroppedFrom>>32, s.DroppedFrom&(1<<32-1)
	}
	return r
}

// dropped says what was left out and from where on.
func (r *recoveryDocument) dropped() string {
	n := humanize.Comma(r.DroppedBytes) + " bytes"
	if r.DroppedSegment == 0 { // segments count from 1: it was not the log
		return fmt.Sprintf("left out: %s at the end of the manifest, an edit that is not whole", n)
	}
	return fmt.Sprintf("left out: %s of the log, from offset %d of segment %d (%s) on: everything behind the last whole commit",
		n, r.DroppedOffset, r.DroppedSegment, base.FileName(base.FileLog, r.DroppedSegment))
}

// text is recovery as stats prints it.
func (r *recoveryDocument) text(logBytes int64) string {
	if !r.Needed {
		return "none was needed" // the store was closed, or somebody writes it: a reader is not told
	}
	s := "the store was not closed"
	if r.Seconds > 0 {
		s += fmt.Sprintf(": %s of log replayed in %s", size(logBytes), seconds(r.Seconds).Round(time.Microsecond))
	}
	if r.DroppedBytes > 0 {
		s += "; " + r.dropped()
	}
	return s
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// warning is the JSON document of a warning: {"warning": {...}} on standard error.
type warning struct {
	Code           string `json:"code"`
	Command        string `json:"command"`
	Message        string `json:"message"`
	DroppedBytes   int64  `json:"dropped_bytes"`
	DroppedSegment uint64 `json:"dropped_segment,omitempty"`
	DroppedOffset  uint64 `json:"dropped_offset,omitempty"`
}

// warnOfDropped says on standard error that opening the store left something out.
// No verb fails for that, since it is what a crash leaves; but whoever misses a
// commit learns where it went.
func (a *app) warnOfDropped(dir string, s cairn.RecoveryStats) {
	if s.DroppedBytes == 0 {
		return
	}
	r := newRecoveryDocument(s)
	text := fmt.Sprintf("the store in %s was not closed; %s", dir, r.dropped())
	if a.json {
		w := warning{"dropped_tail", a.cmd.CommandPath(), text, r.DroppedBytes, r.DroppedSegment, r.DroppedOffset}
		line, _ := json.Marshal(map[string]any{"warning": w})
		fmt.Fprintf(a.err, "%s\n", printableJSON(nil, line))
		return
	}
	fmt.Fprintf(a.err, "%s: warning: %s\n", a.cmd.CommandPath(), printable(text))
}
