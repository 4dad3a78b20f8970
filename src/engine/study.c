/* What is found out about programs before anything is decided about them. */
#include "engine/study.h"

#include <assert.h>
#include <errno.h>

#include "base/text.h"

void nc_study_add(struct nc_study *study, enum nc_language language, const char *file,
	const char *code, size_t size)
{
	assert(study->count < NC_REQUEST_STEPS_MAX);
	study->text[study->count++] = (struct nc_study_text){
		.language = language, .file = file ? file : "", .code = code, .size = size};
}

void nc_study_read(struct nc_study_text *text, struct nc_policy *policy)
{
	if (text->language >= 0)
		text->found = (struct nc_detection){
			.language = text->language, .reason = "named in the request"};
	else
		text->error = nc_detect(
			*text->file ? text->file : NULL, text->code, text->size, &text->found);
	if (text->error == 0)
		text->error = nc_policy_analyse(
			policy, text->found.language, text->code, text->size, &text->report);
}

void nc_study_read_all(struct nc_study *study)
{
	for (size_t i = 0; i < study->count; i++)
		nc_study_read(&study->text[i], study->terms->analyser);
}

const char *nc_study_error(int error)
{
	switch (error) {
	case -ENOENT:
		return "The language could not be told from the code: name it (`language`, or "
		       "--lang)";
	case -EPROTO:
		return "The code cannot be analysed: reading it takes more time or memory than an "
		       "analysis may";
	case -ETIME:
		return "The code was not analysed in time: too much waits to be, or nacre-analyst "
		       "does not answer";
	default:
		return nc_errno_text(error);
	}
}

void nc_study_done(struct nc_study *study)
{
	assert(!study->inquiry);
	for (size_t i = 0; i < study->count; i++)
		nc_report_free(study->text[i].report);
	*study = (struct nc_study){0};
}
