package data

import (
	"bytes"
	"encoding/json"
)

// readJSONLines takes each line as a value, as it stands. Empty lines are no
// records. The key is a field of the object: a string's text, or a number as it is
// written.
func readJSONLines(text []byte, field string, c *collector) error {
	line := 0
	for rest := skipMark(text); len(rest) > 0; {
		var value []byte
		value, rest, _ = bytes.Cut(rest, []byte("\n"))
		line++
		value = bytes.TrimSpace(value)
		if len(value) == 0 {
			continue
		}
		if !json.Valid(value) {
			c.complain(line, "no JSON: %s", jsonComplaint(value))
			continue
		}
		key, why := jsonKey(value, field)
		if why != "" {
			c.complain(line, "%s", why)
			continue
		}
		c.add(line, key, value[:len(value):len(value)])
	}
	return nil
}

func jsonComplaint(value []byte) string {
	var any json.RawMessage
	return json.Unmarshal(value, &any).Error()
}

// jsonKey returns the key of an object, or why it has none.
func jsonKey(value []byte, field string) (key []byte, why string) {
	if field == "" {
		return nil, ""
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return nil, "not an object, so it has no field " + field
	}
	raw, has := object[field]
	if !has {
		return nil, "no field " + field
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return []byte(text), ""
	}
	if raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9') {
		return raw, ""
	}
	return nil, "field " + field + " is neither a string nor a number"
}
