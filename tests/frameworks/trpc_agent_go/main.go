// A server of trpc-agent-go's own AG-UI endpoint and of its plain events, with a scripted model.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"log"
	"net/http"

	_ "github.com/mattn/go-sqlite3"
	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/graph"
	"trpc.group/trpc-go/trpc-agent-go/graph/checkpoint/sqlite"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/server/agui"
	aguiadapter "trpc.group/trpc-go/trpc-agent-go/server/agui/adapter"
	aguirunner "trpc.group/trpc-go/trpc-agent-go/server/agui/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	folder := flag.String("home", ".", "the folder of checkpoints and effects")
	flag.Parse()
	database, err := sql.Open("sqlite3", "file:"+*folder+"/checkpoints.db?_busy_timeout=5000&_sync=FULL")
	check(err)
	saver, err := sqlite.NewSaver(database)
	check(err)
	payments, err := home{*folder}.payments(saver)
	check(err)
	office, err := office(payments, saver)
	check(err)
	mux := http.NewServeMux()
	for _, served := range []agent.Agent{payments, office, home{*folder}.helper()} {
		serve(mux, served)
	}
	check(http.ListenAndServe(*address, mux))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serve mounts an agent at /agui/NAME and its plain events, one a line, at /events/NAME.
func serve(mux *http.ServeMux, served agent.Agent) {
	name := served.Info().Name
	sessions := inmemory.NewSessionService()
	runs := runner.NewRunner(name, served, runner.WithSessionService(sessions))
	server, err := agui.New(runs,
		agui.WithPath("/agui/"+name),
		agui.WithAppName(name),
		agui.WithSessionService(sessions),
		agui.WithGraphNodeInterruptActivityEnabled(true),
		agui.WithReasoningContentEnabled(true),
		agui.WithAGUIRunnerOptions(aguirunner.WithStateResolver(resolve)),
	)
	check(err)
	mux.Handle("/agui/"+name, server.Handler())
	mux.HandleFunc("/events/"+name, func(writer http.ResponseWriter, request *http.Request) {
		var input aguiadapter.RunAgentInput
		if err := json.NewDecoder(request.Body).Decode(&input); err != nil || len(input.Messages) == 0 {
			http.Error(writer, "send a RunAgentInput with messages", http.StatusBadRequest)
			return
		}
		state, _ := resolve(request.Context(), &input)
		text, _ := input.Messages[len(input.Messages)-1].ContentString()
		options := []agent.RunOption{agent.WithRequestID(input.RunID), agent.WithRuntimeState(state)}
		events, err := runs.Run(request.Context(), "user", input.ThreadID, model.NewUserMessage(text), options...)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		for event := range events {
			_ = json.NewEncoder(writer).Encode(event)
			writer.(http.Flusher).Flush()
		}
	})
}

// resolve turns the resume body's state into the command that brings its values.
func resolve(_ context.Context, input *aguiadapter.RunAgentInput) (map[string]any, error) {
	state, _ := input.State.(map[string]any)
	runtime := map[string]any{}
	for _, key := range []string{graph.CfgKeyLineageID, graph.CfgKeyCheckpointID, graph.CfgKeyCheckpointNS} {
		if value, ok := state[key].(string); ok {
			runtime[key] = value
		}
	}
	if values, ok := state[graph.CfgKeyResumeMap].(map[string]any); ok {
		runtime[graph.StateKeyCommand] = &graph.Command{ResumeMap: values}
	}
	return runtime, nil
}
