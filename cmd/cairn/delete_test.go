package main

import "testing"

func TestDelete(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "2", "\xff", "3")
	cli(t, "delete", dir, "a").ok(t, "")
	cli(t, "delete", dir, "a").ok(t, "")
	cli(t, "delete", dir, "a", "--must-exist").fails(t, exitNotFound, `"a"`, "not found")
	cli(t, "delete", "--json", dir, "a").ok(t, `{"key":"a","existed":false}`+"\n")
	cli(t, "delete", "--json", "--hex", dir, "ff", "--durability", "relaxed").ok(t, `{"key_base64":"/w==","existed":true}`+"\n")
	cli(t, "scan", dir).ok(t, "b\t2\n")
}

func TestDeleteRange(t *testing.T) {
	for _, c := range []struct {
		args       []string
		json, left string
	}{
		{[]string{"--from", "b", "--to", "c"}, `{"from":"b","to":"c"}`, "a c d/1 d/2 e"},
		{[]string{"--from", "c"}, `{"from":"c"}`, "a b"},
		{[]string{"--to", "c"}, `{"to":"c"}`, "c d/1 d/2 e"},
		{[]string{"--prefix", "d/"}, `{"from":"d/","to":"d0"}`, "a b c e"},
		{[]string{"--prefix", "d/", "--from", "d/2"}, `{"from":"d/2","to":"d0"}`, "a b c d/1 e"},
		{[]string{"--hex", "--from", "ff"}, `{"from_base64":"/w=="}`, "a b c d/1 d/2 e"},
		{[]string{"--all"}, `{}`, ""},
	} {
		dir := newStore(t, "a", "", "b", "", "c", "", "d/1", "", "d/2", "", "e", "")
		cli(t, append([]string{"delete", "--json", dir}, c.args...)...).ok(t, c.json+"\n")
		if got := keysOf(t, dir); got != c.left {
			t.Errorf("%v left %q, want %q", c.args, got, c.left)
		}
	}
}

// What may come from a variable that is not set deletes nothing.
func TestDeleteUsage(t *testing.T) {
	dir := newStore(t, "a", "", "b", "")
	for _, args := range [][]string{
		{dir},
		{dir, "a", "--prefix", "b"},
		{dir, "a", "--all"},
		{dir, "--prefix", ""},
		{dir, "--from", "", "--to", ""},
		{dir, "--to", ""},
		{dir, "--all", "--prefix", "a"},
		{dir, "--from", "b", "--to", "a"},
		{dir, "--prefix", "a", "--from", "zzz"},
		{dir, "--prefix", "b", "--to", "a"},
		{dir, "--prefix", "a", "--must-exist"},
		{dir, "--prefix", "a", "--prefix", "b"},
		{dir, "--from", "a", "--to", "b", "--from", "b"},
		{dir, "--hex", "--prefix", "z"},
		{dir, ""},
	} {
		cli(t, append([]string{"delete"}, args...)...).fails(t, exitUsage)
	}
	if got := keysOf(t, dir); got != "a b" {
		t.Errorf("left: %q", got)
	}
}
