// Names as the libraries' kernels carry them in real traces.

#include "instruments/trace/taxonomy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace campaign::trace {
namespace {

struct Case {
    std::string_view kernel;
    std::string_view category;
};

constexpr std::array cases{
    Case{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm.allreduce"},
    Case{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "comm.allreduce"},
    Case{"ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymDevArgs)", "comm.allreduce"},
    Case{"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, "
         "__nv_bfloat16*, int, int)",
         "comm.allreduce"},
    Case{
        "void vllm::cross_device_reduce_2stage<half, 4>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, half*, int, int)",
        "comm.allreduce"},
    Case{"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long, unsigned "
         "int**, unsigned long, unsigned long)",
         "comm.allreduce"},
    Case{"void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16>", "comm.allreduce"},
    Case{"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(AllReduceFusionPattern)1, "
         "__nv_bfloat16, 8, true>",
         "comm.allreduce"},
    Case{"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<1, __half, 4>", "comm.allreduce"},
    Case{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm.allgather"},
    Case{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm.reducescatter"},
    Case{"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "comm.sendrecv"},
    Case{"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm.broadcast"},
    Case{"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "comm.other"},
    Case{"void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*, int*, long*, int*, int*, int*, int, int)",
         "comm.alltoall"},
    Case{"void deep_ep::internode_ll::combine<7168, 9, false>(void*, void*, int*, int*)", "comm.alltoall"},
    Case{"void deep_ep::intranode::notify_dispatch<8>(int const*, int*)", "comm.alltoall"},
    Case{"void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899906843648l, 0l, 256, 4, 16, 4, false, 4, 8, false>(int4 "
         "const*, int4*)",
         "moe.gemm"},
    Case{"void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 256, 1, 8, 8, false, 4, 8, false>(int4 const*, int4 const*, "
         "int4*)",
         "gemm"},
    Case{"fused_moe_kernel", "moe.gemm"},
    Case{"fused_moe_kernel_gptq_awq", "moe.gemm"},
    Case{
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<cute::tuple<int, "
        "int, int> >, cutlass::gemm::collective::CollectiveMma> >",
        "moe.gemm"},
    Case{"bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_schedP2x1",
         "moe.gemm"},
    Case{"void moe::dev::routing::routingIndicesHistogramKernel<moe::dev::routing::routingRenormalize::KernelParams<float>>",
         "moe.routing"},
    Case{"void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<cutlass::bfloat16_t> >",
         "moe.routing"},
    Case{"void vllm::moe::topkGating<8, 256, 4, 16, 32, int, float>(float const*, bool const*)", "moe.routing"},
    Case{"void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*)", "moe.routing"},
    Case{"void vllm::moe::grouped_topk_fused_kernel<float, int>", "moe.routing"},
    Case{
        "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int, unsigned long, int*)",
        "moe.routing"},
    Case{"void vllm::moe::count_and_sort_expert_tokens_kernel<int>(int const*, int*, int*, unsigned long)", "moe.routing"},
    Case{"void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)", "moe.routing"},
    Case{"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "gemm"},
    Case{"nvjet_hsh_192x192_64x4_2x1_v_bz_coopB_TNN", "gemm"},
    Case{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_"
         "cublas",
         "gemm"},
    Case{"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, true, false>",
         "gemm"},
    Case{"void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false>",
         "gemm"},
    Case{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1", "gemm"},
    Case{"void deep_gemm::sm90_fp8_gemm_1d2d_impl<7168u, 2048u>", "gemm"},
    Case{"_w8a8_block_fp8_matmul", "gemm"},
    Case{"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90> "
         "> >",
         "attention"},
    Case{"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>, true>", "attention"},
    Case{"void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>, 8>", "attention"},
    Case{"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", "attention"},
    Case{"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u>", "attention"},
    Case{"void flashinfer::BatchPrefillWithRaggedKVCacheKernel<flashinfer::KernelTraits>", "attention"},
    Case{"void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>", "attention"},
    Case{"kernel_unified_attention_2d", "attention"},
    Case{"attn_fwd", "attention"},
    Case{"_fwd_grouped_kernel_stage1", "attention"},
    Case{"void flash::flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8> >", "attention.mla"},
    Case{"void vllm::merge_attn_states_kernel<__nv_bfloat16, 8>", "attention.mla"},
    Case{"void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>", "kv_cache"},
    Case{"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>", "kv_cache"},
    Case{"_copy_page_indices_kernel", "kv_cache"},
    Case{"void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)", "norm"},
    Case{"std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
         "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
         "norm"},
    Case{"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "triton.fused"},
    Case{"triton_poi_fused_add_mul_sigmoid_3", "triton.fused"},
    Case{"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "rope"},
    Case{"void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 "
         "const&)), true>",
         "activation"},
    Case{"void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>", "quant"},
    Case{"void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, true, false, float>", "quant"},
    Case{"void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::BlockScaleQuantizationType)2, __nv_bfloat16>",
         "quant"},
    Case{"void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>(int, int)", "quant"},
    Case{"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>", "sampling"},
    Case{"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>", "sampling"},
    Case{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, "
         "long, 4> >",
         "sampling"},
    Case{"void flashinfer::sampling::TopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)2>", "sampling"},
    Case{"void "
         "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}"
         ">",
         "elementwise"},
    Case{"void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::OpaqueType<2u>, unsigned "
         "int, 2, 128, 1>",
         "elementwise"},
    Case{"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
         "elementwise"},
    Case{"CUDA Graph 109", "cuda_graph"},
    Case{"some_unknown_vendor_thing_42", "other"}};

TEST(Taxonomy, PutsEachKnownKernelWhereItBelongs) {
    const Taxonomy taxonomy;
    for (const Case& each : cases) EXPECT_EQ(taxonomy.category(each.kernel), each.category) << each.kernel;
}

TEST(Taxonomy, CountsCustomAllReduceAsCommunicationThoughItsNameHasNoNccl) {
    const Taxonomy taxonomy;
    for (const char* const kernel :
         {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
          "multimem_all_reduce_kernel<c10::BFloat16, 16>", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"})
        EXPECT_TRUE(is_communication(taxonomy.category(kernel))) << kernel;
}

TEST(Taxonomy, CallsAnUnknownKernelOtherInsteadOfGuessing) {
    const Taxonomy taxonomy;
    EXPECT_EQ(taxonomy.category("zzz"), "other");
    EXPECT_EQ(taxonomy.category(""), "other");
}

TEST(Taxonomy, AnswersForANameOfAMegabyteAsForItsBeginning) {
    const Taxonomy taxonomy;
    EXPECT_EQ(taxonomy.category("nvjet_tst_" + std::string(1U << 20U, 'a')), "gemm");
    EXPECT_EQ(taxonomy.category(std::string(1U << 20U, 'z')), "other");
}

TEST(Taxonomy, NamesCategoriesAsPeopleDo) {
    EXPECT_EQ(plain_name("comm.allreduce"), "all-reduce");
    EXPECT_EQ(plain_name("gemm"), "gemm");
}

}   // namespace
}   // namespace campaign::trace
