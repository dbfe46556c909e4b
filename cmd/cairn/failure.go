package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// keyError is what went wrong with one key.
type keyError struct {
	key []byte
	dir string
	err error
}

// shownKeyBytes is how much of a key a message shows.
const shownKeyBytes = 100

func (e *keyError) Error() string {
	key, more := e.key, ""
	if len(key) > shownKeyBytes {
		key, more = key[:cut(key, shownKeyBytes)], "..."
	}
	if errors.Is(e.err, cairn.ErrNotFound) {
		return fmt.Sprintf("key \"%s\"%s not found in %s", appendEscaped(nil, key), more, e.dir)
	}
	return fmt.Sprintf("key \"%s\"%s in %s: %s", appendEscaped(nil, key), more, e.dir, message(e.err))
}

func (e *keyError) Unwrap() error { return e.err }

// closeError is what went wrong when a store was closed after what was asked for was done. Closing makes
// relaxed commits durable: of these it is not known then.
type closeError struct {
	err     error
	relaxed bool
}

func (e *closeError) Error() string {
	if e.relaxed { // damage may be that of the log, found before the commit was synced
		return "what was asked for is done, but may not survive a power loss: the store could not be closed well: " + message(e.err)
	}
	return "what was asked for is done and stays, but then the store could not be closed well: " + message(e.err)
}

func (e *closeError) Unwrap() error { return e.err }

// withKey adds key and store to the errors that do not name them.
func withKey(err error, dir string, key []byte) error {
	if err == nil || errors.Is(err, errReaderGone) || errors.As(err, new(*outputError)) {
		return err
	}
	return &keyError{key: key, dir: dir, err: err}
}

// failure is the JSON document of an error: {"error": {...}} on standard error.
type failure struct {
	Code      string     `json:"code"`
	Exit      int        `json:"exit"`
	Command   string     `json:"command"`
	Message   string     `json:"message"`
	Key       *string    `json:"key,omitempty"`
	KeyBase64 []byte     `json:"key_base64,omitempty"`
	File      string     `json:"file,omitempty"`
	Offset    *int64     `json:"offset,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Host      string     `json:"host,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

// report says on standard error how the command failed.
func (a *app) report(cmd *cobra.Command, err error, code int) {
	name := "cairn"
	if cmd != nil {
		name = cmd.CommandPath()
	}
	if a.json {
		line, _ := json.Marshal(map[string]any{"error": describe(err, name, code)})
		fmt.Fprintf(a.err, "%s\n", printableJSON(nil, line))
		return
	}
	fmt.Fprintf(a.err, "%s: %s\n", name, printable(message(err)))
	if code == exitUsage {
		fmt.Fprintf(a.err, "Try \"%s --help\".\n", name)
	}
}

func describe(err error, command string, code int) failure {
	f := failure{Code: codeNames[code], Exit: code, Command: command, Message: message(err)}
	var keyed *keyError
	if errors.As(err, &keyed) {
		f.Key, f.KeyBase64 = jsonBytes(keyed.key)
	}
	var corrupt *cairn.CorruptionError
	if errors.As(err, &corrupt) {
		f.File, f.Offset = corrupt.File, offsetOf(corrupt)
	}
	var locked *cairn.LockedError
	if errors.As(err, &locked) {
		f.File, f.PID, f.Host = locked.Path, locked.PID, locked.Host
		if !locked.Since.IsZero() {
			f.Since = &locked.Since
		}
	}
	return f
}

// offsetOf is the offset of a damage, nil if the file as a whole is meant.
func offsetOf(e *cairn.CorruptionError) *int64 {
	if e.Offset < 0 {
		return nil
	}
	return &e.Offset
}

// message is what and where, in one line.
func message(err error) string {
	var keyed *keyError
	var closing *closeError
	var corrupt *cairn.CorruptionError
	var locked *cairn.LockedError
	switch {
	case errors.As(err, &keyed):
		return keyed.Error()
	case errors.As(err, &closing):
		return closing.Error()
	case errors.As(err, &locked):
		return lockedMessage(locked)
	case errors.As(err, new(*damageError)):
	case errors.As(err, &corrupt):
		return corruptMessage(corrupt)
	}
	return oneLine(err)
}

// oneLine is the text of err, of joined errors one behind the other, without the package's name in front of each.
func oneLine(err error) string {
	text := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines, parts []string
		for _, e := range joined.Unwrap() {
			lines, parts = append(lines, e.Error()), append(parts, oneLine(e))
		}
		if strings.Join(lines, "\n") == text {
			return strings.Join(parts, "; ")
		}
	}
	if cause := errors.Unwrap(err); cause != nil {
		if what, ok := strings.CutSuffix(text, cause.Error()); ok {
			text = what + oneLine(cause)
		}
	}
	return strings.TrimPrefix(text, "cairn: ")
}

func corruptMessage(e *cairn.CorruptionError) string {
	if e.Offset < 0 {
		return fmt.Sprintf("corruption in %s: %s", e.File, e.What)
	}
	return fmt.Sprintf("corruption in %s at offset %d: %s", e.File, e.Offset, e.What)
}

// lockedMessage names the holder, if it is a writer: readers do not sign the lock.
func lockedMessage(e *cairn.LockedError) string {
	if e.PID == 0 {
		return fmt.Sprintf("store is locked: %s is held by another process, which one is not known", e.Path)
	}
	return fmt.Sprintf("store is locked: %s is held by process %d on host %s since %s",
		e.Path, e.PID, e.Host, e.Since.Format(time.RFC3339))
}
