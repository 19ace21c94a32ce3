// Bot is a chat bot whose conversations last: each line of standard input is
// said by a person, "NAME: text", and each person has a session. Stop it, kill
// it, start it again: it continues where it was.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"goclaw/provider/anthropic"
	"goclaw/provider/offline"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/sqlite"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	store, err := sqlite.Open("bot.db")
	if err != nil {
		return err
	}
	defer store.Close()
	model := runner.Model{Provider: offline.New(offline.Config{}), Name: "offline/offline"}
	if key := os.Getenv("ANTHROPIC_API_KEY"); key != "" {
		model = runner.Model{
			Provider: anthropic.New(anthropic.Config{APIKey: key}), Name: "anthropic/claude-sonnet-4-5", Window: 200_000,
			System: "You are a bot in a group chat. Answer in one or two sentences.",
		}
	}
	bot := runner.Simple(store, model)
	defer bot.Close(ctx)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), ": ")
		if !ok {
			fmt.Println(`write a line as "Ana: hello"`)
			continue
		}
		key := session.Key("bot:stdin:" + strings.ToLower(name))
		s, err := bot.Load(ctx, key)
		if err != nil {
			return err
		}
		fmt.Printf("[%s, turn %d] ", name, s.Turns+1)
		for piece, err := range bot.Say(ctx, key, text) {
			if err != nil {
				return err
			}
			fmt.Print(piece)
		}
		fmt.Println()
	}
	return nil
}
