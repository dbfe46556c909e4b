package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// refuseUnknown makes cobra's commands help and completion fail for a word they do
// not know, instead of printing something else and ending with code 0.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.RunE = help
		case "completion":
			cmd.Args = commandOnly
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = arguments(0, 0)
			}
		}
	}
}

func help(cmd *cobra.Command, args []string) error {
	root := cmd.Root()
	about, rest, err := root.Find(args)
	if err != nil || about == nil || len(rest) > 0 {
		return usagef("there is no help about %q; %s --help lists the commands", strings.Join(args, " "), root.Name())
	}
	about.InitDefaultHelpFlag() // so that the list of flags has it
	return about.Help()
}
