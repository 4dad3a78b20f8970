/* Reads hostile bytes as a request: every fault has a place and a text, a good one is whole. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "engine/request.h"

static void check_words(const struct nc_request_words *words)
{
	assert(words->words && !words->words[words->count]);
	for (size_t i = 0; i < words->count; i++)
		assert(words->words[i]);
}

static void check_good(const struct nc_request *request)
{
	assert(request->n_steps >= 1 && request->n_steps <= NC_REQUEST_STEPS_MAX);
	for (size_t i = 0; i < request->n_steps; i++) {
		const struct nc_request_step *step = &request->step[i];

		assert(step->code && step->code_size > 0 && strlen(step->code) == step->code_size);
		assert(step->name && step->file);
		check_words(&step->inputs);
		check_words(&step->args);
	}
	for (size_t i = 0; i < request->files.count; i++)
		assert(nc_path_is_plain(request->files.file[i].path) &&
			request->files.file[i].data);
	check_words(&request->packages);
	check_words(&request->capture);
	assert(request->priority <= 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nc_faults faults;
	cleanup_request struct nc_request request = {0};
	nc_buf_cleanup struct nc_buf text = NC_BUF(1024U * 1024);
	cleanup_json json_t *list = NULL;
	int r;

	faults = (struct nc_faults){0};
	r = nc_request_parse((const char *)data, size, &request, &faults);
	assert(r == 0 || r == -EINVAL);
	assert((r == 0) == (faults.count == 0));
	if (r == 0)
		check_good(&request);
	list = nc_faults_json(&faults); /* jansson refuses what is not UTF-8 */
	assert(list && json_array_size(list) == faults.count + (faults.left_out > 0));
	nc_faults_text(&faults, &text);
	for (size_t i = 0; i < text.size; i++)
		assert(text.data[i] == '\n' || (unsigned char)text.data[i] >= 0x20);
	return 0;
}
