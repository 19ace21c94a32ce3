package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/local"
	"goclaw/internal/models"
	"goclaw/internal/near"
	"goclaw/internal/repl/line"
	"goclaw/internal/secrets"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/llm"
	"goclaw/provider/offline"
	"goclaw/window"
)

// setupFlags are answers given in advance.
type setupFlags struct {
	provider, baseURL, keyFile, mode string
	imports, follow, yes             bool
}

func setupCmd(a *app) *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Find keys, models and other agents, and write the configuration",
		Long: `Looks for keys, model servers on this machine and other agents' sessions, asks
for what is missing, checks the key, and writes the settings, with comments, into
the configuration. Nothing is written before you have seen it and agreed; Ctrl-C
leaves everything as it was. Run it again to change something: Enter keeps what
is set. Flags answer questions in advance; without a terminal, --yes takes the
defaults for the rest.`,
		Example: `  goclaw setup
  goclaw setup --yes --model anthropic/claude-sonnet-4-5 --mode edits
  pass show anthropic | goclaw setup --yes --provider anthropic --key-file -`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSetup(cmd.Context(), a, f, func(flag string) bool { return cmd.Flags().Changed(flag) })
		},
	}
	cmd.Flags().StringVar(&f.provider, "provider", "", "whose models are asked: "+strings.Join(models.Providers(), ", ")+", offline, or another name with --base-url")
	cmd.Flags().StringVar(&f.baseURL, "base-url", "", "the address of the provider, such as http://127.0.0.1:8000/v1")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "read the provider's key from this file; - is standard input")
	cmd.Flags().StringVar(&f.mode, "mode", "", "what is done without asking: ask (nothing), edits, plan (only reading) or all")
	cmd.Flags().BoolVar(&f.imports, "import", true, "import the sessions of other agents")
	cmd.Flags().BoolVar(&f.follow, "follow", true, "import automatically what other agents add later")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "ask nothing: take the flags and the defaults")
	return cmd
}

// setup is a conversation about the main settings. What it learns is written at
// its end, or not at all.
type setup struct {
	*app
	setupFlags
	given   func(flag string) bool
	q       asking
	servers []local.Server
	agents  map[string]int // sessions by program
	change  []settingChange
}

// settingChange is a setting that is to be written.
type settingChange struct {
	key   []string
	value any
}

func (s *setup) set(value any, key ...string) {
	s.change = append(s.change, settingChange{key, value})
}

func runSetup(ctx context.Context, a *app, f setupFlags, given func(string) bool) error {
	s := &setup{app: a, setupFlags: f, given: given, q: asking{e: a.env}}
	a.stores.NoImport = true
	c, err := a.config()
	if err != nil {
		return err
	}
	if person := terminal.Is(a.in) && terminal.Is(a.out); person && !f.yes {
		s.q.in = line.NewPlain(a.in, a.out)
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	if err := s.look(ctx); err != nil {
		return err
	}
	if s.q.in == nil && !f.yes {
		return s.wouldAsk()
	}
	for _, step := range []func(context.Context) error{s.chooseModel, s.chooseMode, s.chooseImport} {
		if err := step(ctx); err != nil {
			return s.left(err)
		}
	}
	return s.finish(ctx, c)
}

// left says that nothing was changed.
func (s *setup) left(err error) error {
	if s.interrupted.Load() || errors.Is(err, io.EOF) {
		fmt.Fprintln(s.err)
		return errors.New("setup was stopped: nothing was changed")
	}
	return err
}

// look finds what there is, and shows it.
func (s *setup) look(ctx context.Context) error {
	s.servers = s.models.LocalServers(ctx)
	s.agents = map[string]int{}
	if paths := s.stores.Sources(); len(paths) > 0 {
		cat, err := inherit.Find(ctx, paths, s.stores.FindOptions("", nil))
		if err != nil {
			return s.left(err)
		}
		for _, t := range cat.Transcripts {
			s.agents[t.Program]++
		}
		cat.Close()
	}
	say := func(what, found, none string) {
		fmt.Fprintf(s.out, "  %-14s %s\n", what, cmp.Or(found, s.style().Dim(none)))
	}
	fmt.Fprintln(s.out, s.style().Bold("Found"))
	var keys []string
	for _, p := range models.Providers() {
		if from := s.keySource(p); from != "" {
			keys = append(keys, p+" ("+transcript.Name(from)+")")
		}
	}
	say("keys", strings.Join(keys, ", "), "none")
	var servers []string
	for _, srv := range s.servers {
		servers = append(servers, fmt.Sprintf("%s with %s", models.ServerNames[srv.Name], transcript.Count(len(srv.Models), "model")))
	}
	say("local models", strings.Join(servers, ", "), "no server answers")
	say("other agents", agentCounts(s.agents), "no sessions")
	say("configuration", s.conf.File, "")
	return nil
}

// agentCounts lists how many sessions there are of each program.
func agentCounts(n map[string]int) string {
	var out []string
	for _, p := range inherit.Programs {
		if n[p] > 0 {
			out = append(out, fmt.Sprintf("%s (%s)", p, transcript.Count(n[p], "session")))
		}
	}
	return strings.Join(out, ", ")
}

// keyOf returns the key of a provider that is set, and from where.
func (s *setup) keyOf(provider string) (key, from string) {
	if key := s.conf.Providers[provider].APIKey; key != "" {
		return key, s.conf.Source("providers." + provider + ".apiKey")
	}
	if name := models.KeyVariable(provider); s.getenv(name) != "" {
		return s.getenv(name), "$" + name
	}
	return "", ""
}

func (s *setup) keySource(provider string) string {
	_, from := s.keyOf(provider)
	return from
}

// wouldAsk says what is asked, for somebody who cannot be.
func (s *setup) wouldAsk() error {
	def := s.defaultProvider()
	keyed := def
	if def == offline.Name {
		keyed = "anthropic"
	}
	fmt.Fprintln(s.out, "setup would ask")
	for _, q := range [][3]string{
		{"provider", "--provider", def}, {"key", "--key-file FILE, or $" + models.KeyVariable(keyed), cmp.Or(s.keySource(def), "none")},
		{"model", "--model", cmp.Or(s.models.Flag, s.conf.Model, s.defaultModel(def), offline.Name)}, {"mode", "--mode", s.conf.Tools.Mode},
		{"import", "--import", strconv.FormatBool(s.conf.Session.Inherit.Enabled)}, {"follow", "--follow", strconv.FormatBool(s.conf.Session.Inherit.Follow)},
	} {
		fmt.Fprintf(s.out, "  %-10s %s [%s]\n", q[0], q[1], q[2])
	}
	return usage("setup needs a terminal to ask: --yes takes the flags, and the values in brackets for the rest")
}

// named returns the provider that the flags name.
func (s *setup) named() string {
	provider, _, _ := strings.Cut(s.models.Flag, "/")
	return cmp.Or(s.provider, provider)
}

// defaultProvider is the one that is configured, else one with a key, else a
// server here if somebody is there to agree, else the built-in model.
func (s *setup) defaultProvider() string {
	if named := s.named(); named != "" {
		return named
	}
	if provider, _, _ := strings.Cut(s.conf.Model, "/"); provider != "" {
		return provider
	}
	for _, p := range models.Providers() {
		if s.keySource(p) != "" && !strings.HasPrefix(models.Bases[p], "http://127.0.0.1:") {
			return p
		}
	}
	if len(s.servers) > 0 && s.q.in != nil {
		return s.servers[0].Name
	}
	return offline.Name
}

// hosted reports whether a provider asks for a key.
func hosted(provider string) bool {
	return provider == "anthropic" || provider == "openai" || provider == "openrouter"
}

// chooseModel asks for the provider, its key and its model.
func (s *setup) chooseModel(ctx context.Context) error {
	provider, err := s.chooseProvider(ctx)
	if err != nil {
		return err
	}
	if provider == offline.Name {
		if s.conf.Model != "" && s.conf.Model != offline.Name {
			s.set(offline.Name, "model")
		}
		return nil
	}
	at := s.conf.Providers[provider]
	if at.BaseURL, err = s.chooseAddress(ctx, provider, at.BaseURL); err != nil {
		return err
	}
	if at.APIKey, err = s.chooseKey(ctx, provider, at); err != nil {
		return err
	}
	return s.chooseName(ctx, provider, at)
}

func (s *setup) chooseProvider(ctx context.Context) (string, error) {
	options, shown := []string{}, []string{}
	add := func(name, note string) {
		options, shown = append(options, name), append(shown, fmt.Sprintf("%-12s %s", name, s.style().Dim(note)))
	}
	for _, p := range []string{"anthropic", "openai", "openrouter"} {
		add(p, cmp.Or(s.keySource(p), "needs a key"))
	}
	for _, srv := range s.servers {
		add(srv.Name, fmt.Sprintf("on this machine, with %s", firstModels(srv.Models)))
	}
	add(offline.Name, "built in: needs no key and no network, but is not a language model")
	if named := s.named(); named != "" {
		return named, nil
	}
	known := append(models.Providers(), slices.Sorted(maps.Keys(s.conf.Providers))...)
	return s.q.pick(ctx, "Which provider?", options, shown, s.defaultProvider(), func(name string) error {
		another := s.q.in != nil && providerName.MatchString(name) && near.Nearest(name, known) == ""
		if slices.Contains(known, name) || another {
			return nil
		}
		return fmt.Errorf("there is no provider %q", name)
	})
}

// providerName is what a provider may be called.
var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// firstModels names the first models of a server.
func firstModels(here []local.Model) string {
	var out []string
	for _, m := range here[:min(len(here), 3)] {
		out = append(out, models.Shown(m.Name))
	}
	if n := len(here) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// chooseAddress returns the address of the provider; "" is the usual one.
func (s *setup) chooseAddress(ctx context.Context, provider, now string) (string, error) {
	unknown := now == "" && provider != "anthropic" && models.Bases[provider] == ""
	switch {
	case s.baseURL != "" && s.baseURL != now:
		s.set(s.baseURL, "providers", provider, "baseUrl")
		return s.baseURL, nil
	case unknown && s.q.in != nil:
		at, err := s.q.ask(ctx, "The address of "+provider+" (it must speak OpenAI's API)", "http://127.0.0.1:8000/v1", func(text string) (string, error) {
			if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return "", fmt.Errorf("%q is not an address such as http://127.0.0.1:8000/v1", text)
			}
			return text, nil
		})
		if err == nil {
			s.set(at, "providers", provider, "baseUrl")
		}
		return at, err
	case unknown:
		return "", usage("there is no provider %q: --base-url gives its address, or choose %s", provider, strings.Join(models.Providers(), ", "))
	}
	return now, nil
}

// chooseKey returns the key of a provider, which was checked if that is
// possible: the one that is there, or one that is typed or read from a file.
func (s *setup) chooseKey(ctx context.Context, provider string, at config.Provider) (string, error) {
	if s.keyFile != "" {
		key, err := s.readKey()
		if err != nil {
			return "", err
		}
		at.APIKey = key
		problem := s.tryKey(ctx, provider, at)
		if errors.Is(problem, llm.ErrAuth) {
			return "", problem
		}
		s.set(key, "providers", provider, "apiKey")
		return key, nil
	}
	if key, from := s.keyOf(provider); key != "" {
		at.APIKey = key
		s.note("using the key from %s", from)
		if problem := s.tryKey(ctx, provider, at); !errors.Is(problem, llm.ErrAuth) || s.q.in == nil {
			return key, nil
		}
	} else if !hosted(provider) && !s.asksForKey(ctx, provider, at) {
		return "", nil
	}
	for s.q.in != nil {
		key, err := s.q.in.AskSecret(ctx, fmt.Sprintf("Key for %s (what you type is not shown; Enter: none): ", provider))
		switch key = strings.TrimSpace(key); {
		case err != nil:
			return "", err
		case key == "":
			s.note("no key: set $%s before you start goclaw, or run goclaw setup again", models.KeyVariable(provider))
			return "", nil
		case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
			s.note("a key has letters, digits and punctuation, but no spaces")
			continue
		}
		at.APIKey = key
		if errors.Is(s.tryKey(ctx, provider, at), llm.ErrAuth) {
			continue
		}
		s.set(key, "providers", provider, "apiKey")
		return key, nil
	}
	s.note("there is no key for %s: set $%s before you start goclaw, or give --key-file", provider, models.KeyVariable(provider))
	return "", nil
}

// asksForKey reports whether a server that need not have a key refuses to go
// without one.
func (s *setup) asksForKey(ctx context.Context, provider string, at config.Provider) bool {
	return errors.Is(s.check(ctx, provider, cmp.Or(s.defaultModel(provider), "any"), at), llm.ErrAuth)
}

// readKey reads the file of --key-file.
func (s *setup) readKey() (string, error) {
	var data []byte
	var err error
	if s.keyFile == "-" {
		data, err = io.ReadAll(io.LimitReader(s.env.in, 1<<16))
	} else {
		data, err = os.ReadFile(s.keyFile)
	}
	key := strings.TrimSpace(string(data))
	if err == nil && (key == "" || strings.ContainsAny(key, " \t\r\n")) {
		err = fmt.Errorf("%s does not hold a key: one line, and nothing else", s.keyFile)
	}
	return key, err
}

// tryKey says whether the provider accepts its key, which it asks for nothing
// that costs.
func (s *setup) tryKey(ctx context.Context, provider string, at config.Provider) error {
	err := s.check(ctx, provider, cmp.Or(s.defaultModel(provider), "any"), at)
	host := models.Host(cmp.Or(at.BaseURL, models.Bases[provider], "https://api.anthropic.com"))
	switch {
	case err == nil || errors.Is(err, llm.ErrModel) || errors.Is(err, llm.ErrUnlisted):
		s.note("checked: %s accepts it", host)
	case errors.Is(err, llm.ErrAuth):
		s.note("%s refuses the key: %s", host, transcript.Problem(err))
	default:
		s.note("the key could not be checked: %s", transcript.Problem(err))
	}
	return err
}

// check asks the server of a provider whether it has the model.
func (s *setup) check(ctx context.Context, provider, name string, at config.Provider) error {
	c := *s.conf
	c.Providers = maps.Clone(c.Providers)
	c.Providers[provider] = at
	m, err := models.NewModel(&c, provider+"/"+name, s.getenv)
	if err != nil {
		return err
	}
	checker, ok := m.Provider.(interface {
		Check(ctx context.Context, model string) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return checker.Check(ctx, name)
}

// defaultModel is the model of a provider that is asked if none is named.
func (s *setup) defaultModel(provider string) string {
	switch provider {
	case "anthropic":
		return models.DefaultAnthropic
	case "openai":
		return models.DefaultOpenAI
	}
	for _, srv := range s.servers {
		if srv.Name == provider {
			return srv.Models[0].Name
		}
	}
	return ""
}

// chooseName asks for a model of the provider.
func (s *setup) chooseName(ctx context.Context, provider string, at config.Provider) error {
	def := s.defaultModel(provider)
	if now, name, _ := strings.Cut(s.conf.Model, "/"); now == provider && name != "" {
		def = name
	}
	if named, name, ok := strings.Cut(s.models.Flag, "/"); ok && named == provider {
		def = name
	}
	options, shown := s.offered(ctx, provider, at)
	if more := len(options) - mostOffered; more > 0 {
		options, shown = options[:mostOffered], append(shown[:mostOffered:mostOffered], s.style().Dim(fmt.Sprintf("and %d more: type the name", more)))
	}
	if def == "" && len(options) > 0 {
		def = options[0]
	}
	if def == "" && s.q.in == nil {
		return usage("which model of %s? name it with --model %s/NAME", provider, provider)
	}
	name := def
	if s.models.Flag == "" {
		var err error
		other := func(name string) error {
			if _, err := strconv.Atoi(name); name == "" || err == nil {
				return errors.New("give the number or the name of a model")
			}
			return nil
		}
		if name, err = s.q.pick(ctx, "Which model?", options, shown, def, other); err != nil {
			return err
		}
	}
	if err := s.check(ctx, provider, name, at); errors.Is(err, llm.ErrModel) && provider != "llamacpp" {
		s.note("%s", transcript.Problem(err))
		if yes, err := s.q.sure(ctx, "Use it nevertheless?", s.q.in == nil); err != nil || !yes {
			return cmp.Or(err, errors.New("setup was stopped: nothing was changed"))
		}
	}
	if spec := provider + "/" + name; spec != s.conf.Model {
		s.set(spec, "model")
	}
	return nil
}

// mostOffered is how many models are listed.
const mostOffered = 12

// offered are the models of a provider: those of the catalogue, or what its
// server lists.
func (s *setup) offered(ctx context.Context, provider string, at config.Provider) (names, shown []string) {
	for _, m := range catalogue.Models() {
		vendor, name, _ := strings.Cut(m.ID, "/")
		if vendor != provider {
			continue
		}
		note := window.Short(m.Window) + " tokens"
		if m.Prices != nil {
			note += fmt.Sprintf(", $%g in, $%g out per million", m.Prices.In, m.Prices.Out)
		}
		names, shown = append(names, name), append(shown, fmt.Sprintf("%-28s %s", name, s.style().Dim(note)))
	}
	if len(names) > 0 && at.BaseURL == "" {
		return names, shown
	}
	key, _ := s.keyOf(provider)
	base := local.Address{Name: provider, Base: cmp.Or(at.BaseURL, models.Bases[provider]), Key: cmp.Or(at.APIKey, key)}
	if listed := base.List(ctx); len(listed) > 0 {
		names, shown = nil, nil
		for _, name := range listed {
			names, shown = append(names, name), append(shown, transcript.Name(name))
		}
	}
	return names, shown
}

func (s *setup) chooseMode(ctx context.Context) error {
	modes := config.Choices("tools.mode")
	if s.mode != "" && !slices.Contains(modes, s.mode) {
		return usage("--mode must be ask, edits, plan or all, not %q", s.mode)
	}
	mode := s.mode
	if mode == "" {
		var err error
		notes := map[string]string{"ask": "nothing: it asks before every command and every change", "edits": "it changes files in the folder, and asks before commands", "plan": "nothing, not even after asking: it only reads", "all": "everything"}
		var shown []string
		for _, m := range modes {
			shown = append(shown, fmt.Sprintf("%-8s %s", m, s.style().Dim(notes[m])))
		}
		if mode, err = s.q.pick(ctx, "What is done without asking?", modes, shown, s.conf.Tools.Mode, func(text string) error { return fmt.Errorf("there is no mode %q", text) }); err != nil {
			return err
		}
	}
	if _, said := s.conf.Sources["tools.mode"]; mode != s.conf.Tools.Mode || !said {
		s.set(mode, "tools", "mode")
	}
	return nil
}

// chooseImport asks whether other agents' sessions are wanted, if there are any.
func (s *setup) chooseImport(ctx context.Context) error {
	in := s.conf.Session.Inherit
	n := 0
	for _, k := range s.agents {
		n += k
	}
	wanted, err := s.imports, error(nil)
	if !s.given("import") {
		if wanted = in.Enabled; n > 0 {
			wanted, err = s.q.sure(ctx, importQuestion(n), in.Enabled)
		}
	}
	if err != nil {
		return err
	}
	if wanted != in.Enabled {
		s.set(wanted, "session", "inherit", "enabled")
	}
	follow := s.follow
	if !s.given("follow") {
		if follow = in.Follow; n > 0 && wanted {
			if follow, err = s.q.sure(ctx, "Import automatically what the other agents add later?", in.Follow); err != nil {
				return err
			}
		}
	}
	if follow != in.Follow {
		s.set(follow, "session", "inherit", "follow")
	}
	s.imports = wanted && n > 0
	return nil
}

// finish shows what changes, writes it, and imports.
func (s *setup) finish(ctx context.Context, c *config.Loaded) error {
	if err := s.write(ctx, c); err != nil {
		return s.left(err)
	}
	if !s.imports {
		return s.print("goclaw starts a chat; goclaw doctor checks everything.")
	}
	s.env.conf = nil // as it is now
	if err := importAll(ctx, s.app, nil, importFlags{}); err != nil {
		return err
	}
	return s.print("goclaw starts a chat; goclaw doctor checks everything.")
}

// freshConfig begins a new configuration.
const freshConfig = `// goclaw's configuration. goclaw config shows every setting, with its default,
// and where it came from; goclaw setup asks for those that matter most.
{
}
`

func (s *setup) write(ctx context.Context, c *config.Loaded) error {
	if len(s.change) == 0 {
		return s.print("Nothing to change in " + c.File + ".")
	}
	old, err := wholefile.Read(c.File, wholefile.Small)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Fprintln(s.out, s.style().Bold("Changes in "+c.File))
	for _, ch := range s.change {
		value, was := fmt.Sprint(ch.value), config.Written(old, ch.key)
		if was = cmp.Or(was, "not set"); ch.key[len(ch.key)-1] == "apiKey" {
			value = secrets.Mask(value)
			if was != "not set" {
				was = secrets.Mask(was)
			}
		}
		fmt.Fprintf(s.out, "  %-28s %s  %s\n", strings.Join(ch.key, "."), value, s.style().Dim("(was "+was+")"))
	}
	if yes, err := s.q.sure(ctx, "Write them? Everything else in the file stays as it is.", true); err != nil {
		return err
	} else if !yes {
		return errors.New("nothing was changed")
	}
	err = config.Update(c.File, func(now []byte) (_ []byte, err error) {
		if len(strings.TrimSpace(string(now))) == 0 {
			now = []byte(freshConfig)
		}
		for _, ch := range s.change {
			if now, err = config.Changed(c.File, now, ch.key, ch.value); err != nil {
				return nil, err
			}
			now = config.Comment(now, ch.key)
		}
		return now, nil
	})
	if err != nil {
		return err
	}
	return s.print("wrote " + c.File)
}
